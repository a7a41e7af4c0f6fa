! Loops of OpenMP.
!@ vary: N 1000 9000
!@ flags: -fopenmp
function f@(x) bind(C) result(r)
  use iso_c_binding
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  integer :: i, list($N)
  r = 0
  !$omp parallel do num_threads(2)
  do i = 1, $N
    list(i) = int(mod(x + i * 31_c_long, 1009_c_long))
  end do
  !$omp parallel do reduction(+:r) schedule(dynamic, 8) num_threads(2)
  do i = 1, $N
    r = r + list(i) * mod(i, 8)
  end do
end function
