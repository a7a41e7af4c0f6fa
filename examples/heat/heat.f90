! usage: heat [points a side] [steps]
program heat
  use grid
  implicit none
  type(plate) :: p
  integer :: n, steps, k
  real(8) :: change
  character(32) :: text
  n = 800
  steps = 300
  if (command_argument_count() >= 1) then
    call get_command_argument(1, text)
    read (text, *) n
  end if
  if (command_argument_count() >= 2) then
    call get_command_argument(2, text)
    read (text, *) steps
  end if
  call create(p, n)
  do k = 1, steps
    call step(p, change)
  end do
  print '(a,es24.16)', 'last change ', change
  print '(a,es24.16)', 'mean ', sum(p%t)/(real(n, 8)*n)
end program heat
