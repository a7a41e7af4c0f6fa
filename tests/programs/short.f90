! Loops too short for a region in procedures of a module, in and below loops.
!@ short-loops: refused
!@ levels: -O2 ; -O3 -g
!@ loop-refused: *exact@* ~ too short: at most
!@ loop-refused: *first@* ~ too short: a search
!@ regions: 5
!@ codelets: 4
module parts
contains
  subroutine exact(x, r)
    real(8), intent(in) :: x
    real(8), intent(out) :: r(5)
    integer :: k
    do k = 1, 5
      r(k) = x * k + x * x
    end do
  end subroutine
  ! Called by a region, as long as n says.
  subroutine sweep(u, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: u(n)
    integer :: i
    do i = 2, n - 1
      u(i) = 0.25d0 * (u(i - 1) + 2 * u(i) + u(i + 1))
    end do
  end subroutine
end module

program short
  use parts
  integer, parameter :: n = 5000
  real(8) :: u(n), r(5)
  integer :: i, k, at
  k = 0
  do i = 1, n
    call exact(dble(i) / n, r)
    u(i) = r(5) + mod(i, 7)
  end do
  do i = 1, 20
    call sweep(u, n)
  end do
  do i = 1, 1000
    at = first(i)
    k = k + at
  end do
  print '(f12.6, i8)', sum(u), k
contains
  integer function first(from)
    integer, intent(in) :: from
    first = from
    do while (u(first) < 1)
      first = first + 1
    end do
  end function
end program
