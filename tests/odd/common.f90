! COMMON, EQUIVALENCE, SAVE, DATA.
!@ vary: N 50 500
function f@(x) bind(C) result(r)
  use iso_c_binding
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  integer :: i, list(8), count
  real :: both(4)
  integer :: seen(4)
  integer(c_long) :: total
  common /c@/ total, list
  equivalence (both, seen)
  save :: count, both
  data count /5/, both /1.0, 2.0, 3.0, 4.0/
  r = x
  total = x
  list = 3
  do i = 1, $N
    count = count + mod(i, 5)
    both(1 + mod(i, 4)) = both(1 + mod(i, 4)) * 0.5 + count
    list(1 + mod(i, 8)) = ieor(list(1 + mod(i, 8)), seen(1 + mod(i + 1, 4)))
    total = total * 31 + list(1 + mod(i * 3, 8))
    r = ieor(r, total)
  end do
end function
