! Internal reads and writes, of many formats.
!@ vary: N 10 90
function f@(x) bind(C) result(r)
  use iso_c_binding
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  character(80) :: text
  integer :: i, back
  real(8) :: value
  r = x
  do i = 1, $N
    write (text, '(i8,1x,f12.4,1x,a)') i, i / 7.0d0, 'odd'
    read (text, *) back, value
    r = ieor(r * 31_c_long, int(value * 1000, c_long)) + back + ichar(text(22:22))
    write (text, *) r
    r = r + len_trim(text)
  end do
end function
