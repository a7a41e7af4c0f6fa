! COMMON, a module variable and a saved local.
module m
  real(8) :: grid(100)
contains
  subroutine step(n)
    integer, intent(in) :: n
    integer :: i
    real(8) :: w
    common /block/ w(10)
    integer, save :: calls = 0
    calls = calls + 1
    do i = 1, n
      grid(i) = grid(i) + w(mod(i, 10) + 1) + calls
    end do
  end subroutine
end module
program p
  use m
  integer :: k
  do k = 1, 3
    call step(100)
  end do
  print *, grid(1)
  print *, 'ready'
  flush(6)
  read *, k
end program
