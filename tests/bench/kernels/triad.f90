! Vector triads and a matrix-vector product over allocatable arrays.
program triad
  implicit none
  integer, parameter :: n = 400000, m = 1200
  real(8), allocatable :: a(:), b(:), c(:), x(:), y(:), matrix(:, :)
  integer :: i, j, t
  allocate (a(n), b(n), c(n), x(m), y(m), matrix(m, m))
  do i = 1, n
    b(i) = sin(real(i, 8))
    c(i) = 1d0/i
  end do
  do j = 1, m
    do i = 1, m
      matrix(i, j) = mod(i*j, 17)
    end do
  end do
  x = 1d-3
  do t = 1, 200
    do i = 1, n
      a(i) = b(i) + 0.5d0*c(i)
    end do
    do i = 1, n
      b(i) = 0.999d0*a(i)
    end do
    y = 0
    do j = 1, m
      do i = 1, m
        y(i) = y(i) + matrix(i, j)*x(j)
      end do
    end do
    x = y/(1d0 + maxval(y))
  end do
  print '(2es24.16)', sum(a), sum(x)
end program triad
