! Formatted scratch files.
!@ vary: N 2 30
!@ allowed: outside state
function f@(x) bind(C) result(r)
  use iso_c_binding
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  integer :: i, unit
  integer(c_long) :: back
  r = x
  open (newunit=unit, status='scratch', form='formatted')
  do i = 1, $N
    write (unit, '(i24)') r
    r = ieor(r * 31_c_long, int(i, c_long))
  end do
  rewind (unit)
  do i = 1, $N
    read (unit, '(i24)') back
    r = r + back
  end do
  close (unit)
end function
