module fields
  implicit none
  type cell
    real(8) :: v(3)
    integer :: kind
  end type
  type(cell), allocatable :: cells(:)
  integer, save :: calls = 0
contains
  subroutine build(n)
    integer, intent(in) :: n
    integer :: i
    allocate(cells(n))
    do i = 1, n
      cells(i)%v = [real(8) :: i, 2*i, 3*i]
      cells(i)%kind = mod(i, 3)
    end do
  end subroutine
  real(8) function norm(a, b)
    real(8), intent(in) :: a(:), b(:)
    integer :: i
    norm = 0
    calls = calls + 1
    do i = 1, size(a)
      norm = norm + a(i) * b(i)
    end do
  end function
  recursive integer function ack(m, n) result(r)
    integer, intent(in) :: m, n
    integer :: i
    r = 0
    if (m == 0) then
      r = n + 1
    else
      do i = 1, 2
        r = r + ack(m - 1, n + i)
      end do
    end if
  end function
end module

subroutine common_work(n)
  implicit none
  integer :: n, i, j
  real(8) :: grid(20, 20), total
  common /work/ grid, total
  do 10 j = 1, n
    do 10 i = 1, n
      grid(i, j) = i * 0.5d0 + j
      total = total + grid(i, j)
      if (total > 1d4) goto 20
10 continue
20 total = total + 1
end subroutine

program main
  use fields
  implicit none
  real(8) :: grid(20, 20), total
  common /work/ grid, total
  real(8), allocatable :: a(:), b(:, :)
  complex(8) :: z
  character(len=8) :: word
  integer :: i, j, found
  logical :: ok
  total = 0
  call build(30)
  call common_work(20)
  allocate(a(50), b(10, 10))
  do concurrent (i = 1:50)
    a(i) = sqrt(real(i, 8))
  end do
  forall (i = 1:10, j = 1:10) b(i, j) = i - j
  z = (0.5d0, 0.25d0)
  outer: do i = 1, 10
    do j = 1, 10
      if (b(i, j) > 6) exit outer
      if (b(i, j) < -6) cycle outer
      z = z * z + b(i, j) * 0.01d0
    end do
  end do outer
  found = 0
  do i = 1, 30
    select case (cells(i)%kind)
    case (0)
      found = found + 1
    case (1)
      cells(i)%v(2) = -cells(i)%v(2)
    case default
      word = 'kind two'
    end select
  end do
  where (a > 5) a = a - 5
  ok = any(cells(:)%kind == 2)
  do while (total > 10)
    total = total / 3
  end do
  print '(3es24.16)', norm(a, a(50:1:-1)), total, sum(b(2, :)) + maxval(b)
  print '(2es24.16,3i6,1x,l1,1x,a)', z, found, ack(4, 2), calls, ok, word
  print '(es24.16)', norm(cells(:)%v(2), cells(:)%v(3))
  deallocate(cells)
end program
