subroutine work(n, total)
  integer, intent(in) :: n
  real(8), intent(inout) :: total
  integer, save :: mine = 0
  integer :: i
  !$omp threadprivate(mine)
  !$omp parallel do reduction(+:total)
  do i = 1, n
    mine = mine + i
    total = total + mine
    !$omp critical
    mine = mine + 1
    !$omp end critical
  end do
end subroutine
