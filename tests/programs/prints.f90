! The Fortran runtime's locks have the thread as their owner.
!@ levels: -O0 -g ; -O2
!@ flags: -O0 ; -O3
!@ codelets: 2
program prints
  implicit none
  integer :: t, n
  character(len=40) :: text
  real(8) :: x
  print *, 0
  n = 0
  do t = 1, 3
    print *, 'step', t
  end do
  do t = 1, 20
    write (text, '(i6, f12.4)') t, 1.5d0 * t
    read (text, *) n, x
    write (6, '(a, i6, f12.4)') 'read', n, x
  end do
end program
