! Parallel regions in Fortran: modules, reductions, sections, tasks, threadprivate, allocatable arrays, num_threads.
!@ levels: -fopenmp -O2 -g ; -fopenmp -O0 ; -fopenmp -O3
!@ teams: 1 2
!@ capture: *@openmp.f90*
!@ loop-refused: * ~ within a parallel region
!@ codelets: 5
!@ threads: 2 3
module field
  implicit none
  integer, parameter :: n = 5000
  integer(8), allocatable :: a(:), b(:)
  integer(8) :: total = 0, added = 0
  integer(8), save :: mine = 3
  !$omp threadprivate(mine)
contains
  subroutine fill(step)
    integer, intent(in) :: step
    integer :: i
    !$omp parallel do schedule(dynamic, 50)
    do i = 1, n
      a(i) = mod(a(i) * 5 + i * step, 1009)
    end do
    !$omp end parallel do
  end subroutine

  function reduced() result(sum)
    integer(8) :: sum
    integer :: i
    sum = 0
    !$omp parallel do reduction(+:sum)
    do i = 1, n
      sum = sum + a(i)
    end do
    !$omp end parallel do
  end function

  subroutine guarded(threads)
    integer, intent(in) :: threads
    integer :: i
    !$omp parallel num_threads(threads) private(i)
    !$omp do
    do i = 1, 300
      !$omp critical
      total = total + a(i)
      !$omp end critical
      !$omp atomic
      added = added + 2
    end do
    !$omp end do
    !$omp single
    b(1) = b(1) + total
    !$omp end single
    !$omp end parallel
  end subroutine

  subroutine parts()
    !$omp parallel sections
    !$omp section
    b(2) = b(2) + 5
    !$omp section
    b(3) = b(3) + a(7)
    !$omp end parallel sections
  end subroutine

  subroutine own()
    integer(8) :: sum
    sum = 0
    mine = 4
    !$omp parallel copyin(mine) reduction(+:sum)
    mine = mine + 1
    sum = sum + (mine - 5)
    !$omp end parallel
    b(4) = b(4) + sum
  end subroutine
end module

program main
  use field
  implicit none
  integer :: step
  integer(8) :: check
  allocate(a(n), b(n))
  a = 1
  b = 0
  check = 0
  do step = 1, 3
    call fill(step)
    check = check + reduced()
    call guarded(step)
    call parts()
    call own()
  end do
  print *, check, total, added, b(1), b(2), b(3), b(4)
end program
