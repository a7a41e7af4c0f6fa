! A time loop that prints, and one that writes a file: the loops inside are regions too.
!@ levels: -O2 ; -O3 -g ; -O0 -g
!@ refused: TIME_LOOP@time_loop.f90:31 ~ writ
!@ codelets: 4
!@ flags: -O0 ; -O3 -march=native
program time_loop
  implicit none
  integer, parameter :: n = 100
  real(8) :: u(n, n), v(n, n), total, line(n)
  integer :: i, j, t
  u = 0
  u(3, 4) = 1
  v = 0
  total = 0
  line = 0
  do t = 1, 6
    print *, 'step', t, total
    do j = 2, n - 1
      do i = 2, n - 1
        v(i, j) = 0.25d0 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1)) + t
      end do
    end do
    do j = 2, n - 1
      do i = 2, n - 1
        u(i, j) = v(i, j)
        total = total + v(i, j)
      end do
    end do
  end do
  open (10, file='steps.txt', status='replace')
  do t = 1, 4
    write (10, '(i6, f20.8)') t, total
    flush (10)
    do j = 1, n
      line(j) = 0.5d0 * line(j) + t
      do i = 1, n
        line(j) = line(j) + u(i, j)
      end do
    end do
    total = total + sum(line)
  end do
  close (10)
  print *, total
end program
