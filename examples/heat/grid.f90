! The state of the solver: a derived type with allocatable components, and what a step does to it.
module grid
  implicit none
  type :: plate
    integer :: n
    real(8), allocatable :: t(:, :), next(:, :)
    real(8) :: conductivity
  end type plate
contains
  subroutine create(p, n)
    type(plate), intent(out) :: p
    integer, intent(in) :: n
    integer :: i
    p%n = n
    p%conductivity = 0.2d0
    allocate (p%t(n, n), p%next(n, n))
    p%t = 0d0
    do i = 1, n
      p%t(i, 1) = 100d0*sin(3.14159265358979d0*i/n)
      p%t(i, n) = 50d0
    end do
    p%next = p%t
  end subroutine create

  subroutine step(p, change)
    type(plate), intent(inout) :: p
    real(8), intent(out) :: change
    integer :: i, j
    change = 0d0
    do j = 2, p%n - 1
      do i = 2, p%n - 1
        p%next(i, j) = p%t(i, j) + p%conductivity*(p%t(i - 1, j) + p%t(i + 1, j) &
                       + p%t(i, j - 1) + p%t(i, j + 1) - 4d0*p%t(i, j))
        change = max(change, abs(p%next(i, j) - p%t(i, j)))
      end do
    end do
    call swap(p%t, p%next)
  end subroutine step

  subroutine swap(a, b)
    real(8), allocatable, intent(inout) :: a(:, :), b(:, :)
    real(8), allocatable :: c(:, :)
    call move_alloc(a, c)
    call move_alloc(b, a)
    call move_alloc(c, b)
  end subroutine swap
end module grid
