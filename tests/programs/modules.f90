! Modules, COMMON blocks, allocatable arrays, derived types, internal procedures and character strings.
!@ codelets: 5
!@ levels: -O0 -g ; -O2 ; -O3 -g
!@ flags: -O0 ; -O3 -march=native ; -Os -mavx2
!@ under: -O3 -march=native ~ * ~ tolerance ~ of a double's value
!@ under: -Os -mavx2 ~ * ~ tolerance ~ of a double's value
module grids
  implicit none
  type :: cell
    real(8) :: value, flux
    integer :: state
  end type cell
  type :: grid
    integer :: n
    type(cell), allocatable :: cells(:)
    real(8), pointer :: border(:) => null()
  end type grid
  real(8), save :: scale = 1.5d0
  integer, parameter :: limit = 10
contains
  subroutine setup(g, n)
    type(grid), intent(out) :: g
    integer, intent(in) :: n
    integer :: i
    g%n = n
    allocate (g%cells(n), g%border(2))
    do i = 1, n
      g%cells(i)%value = sin(real(i, 8))
      g%cells(i)%flux = 0
      g%cells(i)%state = mod(i, limit)
    end do
    g%border = 0.25d0
  end subroutine setup
  subroutine step(g)
    type(grid), intent(inout) :: g
    integer :: i
    do i = 2, g%n - 1
      g%cells(i)%flux = scale*(g%cells(i + 1)%value - 2*g%cells(i)%value + g%cells(i - 1)%value)
    end do
    do i = 2, g%n - 1
      g%cells(i)%value = g%cells(i)%value + 0.1d0*g%cells(i)%flux + g%border(1)*1d-3
      if (g%cells(i)%value > 0) g%cells(i)%state = g%cells(i)%state + 1
    end do
  end subroutine step
end module grids

subroutine accumulate(n)
  implicit none
  integer, intent(in) :: n
  integer :: i, calls
  real(8) :: sums(20)
  common /totals/ sums, calls
  do i = 1, n
    sums(mod(i, 20) + 1) = sums(mod(i, 20) + 1) + i*0.5d0
    calls = calls + 1
  end do
end subroutine accumulate

program main
  use grids
  implicit none
  type(grid) :: g
  integer :: i, calls, letters
  real(8) :: sums(20), total
  real(8), allocatable :: work(:, :), product(:, :)
  character(len=40) :: text
  common /totals/ sums, calls
  calls = 0
  sums = 0
  call setup(g, 500)
  do i = 1, 10
    call step(g)
  end do
  call accumulate(1000)
  allocate (work(30, 40), product(30, 30))
  do i = 1, 40
    work(:, i) = [(real(i*letters_of(i), 8)/(i + 1), letters=1, 30)]
  end do
  product = matmul(work, transpose(work))
  text = 'The quick brown fox jumps over dogs'
  letters = 0
  do i = 1, len_trim(text)
    if (text(i:i) /= ' ') letters = letters + ichar(text(i:i))
  end do
  total = sum(g%cells%value) + sum(product) + sums(3)
  print '(es24.16, 3i8)', total, calls, letters, g%cells(77)%state
contains
  integer function letters_of(k)
    integer, intent(in) :: k
    letters_of = mod(k, 7) + 1
  end function letters_of
end program main
