! PRINT and WRITE to the standard output.
!@ vary: N 2 20
function f@(x) bind(C) result(r)
  use iso_c_binding
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  integer :: i
  r = x
  do i = 1, $N
    print '(a,i6,f9.3)', 'step', i, i / 3.0
    if (mod(i, 3) == 0) write (*, *) 'third', i
    r = ieor(r * 31_c_long, int(i, c_long))
  end do
  flush (6)
end function
