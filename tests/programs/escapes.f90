! A pointer to a local target that a loop leaves behind.
!@ levels: -O0 -g ; -O2 ; -O3 -g
program escapes
  integer :: r
  call s(r)
  print *, r
contains
  subroutine s(r)
    integer, intent(out) :: r
    integer, target :: t(10)
    integer, pointer :: pp
    integer :: i
    do i = 1, 10
      t(i) = i * i
      pp => t(i)
    end do
    call other()
    r = pp
  end subroutine
  subroutine other()
    real(8) :: z(1000)
    call random_number(z)
    if (z(1) < 0) print *, z
  end subroutine
end program
