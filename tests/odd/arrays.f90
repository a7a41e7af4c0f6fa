! Allocatable arrays, sections, intrinsic functions of arrays.
!@ vary: N 10 60
function f@(x) bind(C) result(r)
  use iso_c_binding
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  real(8), allocatable :: a(:, :), b(:)
  integer :: i, n
  n = $N
  allocate (a(n, n), b(0))
  r = x
  do i = 1, n
    a(:, i) = [(real(mod(x + i * j7(i), 17_c_long), 8) / 8, integer :: k = 1, n)]
    b = [b, sum(a(:, i)) / n]
  end do
  a = matmul(a, transpose(a)) / n
  b(1:n:2) = b(n:1:-2)
  do i = 1, n
    r = ieor(r * 31_c_long, transfer(a(i, n + 1 - i) + b(i) + maxval(a(i, :)), r))
  end do
  deallocate (a)
contains
  pure function j7(i) result(j)
    integer, intent(in) :: i
    integer(c_long) :: j
    j = i * 7
  end function
end function
