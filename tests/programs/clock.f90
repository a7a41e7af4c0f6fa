! The clocks of Fortran: system_clock, cpu_time, date_and_time; a loop that stops by one.
!@ levels: -O0 -g ; -O2
!@ capture: *@clock.f90*
!@ codelets: 2
!@ flags: -O0 ; -O3 -march=native
module clocks
  use iso_fortran_env, only: int64, real64
  implicit none
  integer(int64) :: counts(8)
  real(real64) :: seconds(8)
  integer :: dates(8, 8)
  real(real64) :: total
contains
  subroutine readings(n)
    integer, intent(in) :: n
    integer :: i
    do i = 1, n
      call system_clock(counts(i))
      call cpu_time(seconds(i))
      call date_and_time(values=dates(:, i))
    end do
  end subroutine readings

  subroutine until(deadline)
    integer(int64), intent(in) :: deadline
    integer(int64) :: now
    integer :: i
    real(real64) :: x
    call system_clock(now)
    x = 0.5
    do while (now < deadline)
      do i = 1, 20000
        x = 3.7d0*x*(1 - x)
      end do
      total = total + x
      call system_clock(now)
    end do
  end subroutine until
end module clocks

program main
  use clocks
  implicit none
  integer(int64) :: now, rate
  call date_and_time(values=dates(:, 1)) ! reads the time zone
  call readings(8)
  call system_clock(now, rate)
  call until(now + rate*3/10)
  print *, all(counts > 0), all(seconds >= 0), total >= 0
end program main
