! Arrays that grow inside the region: move_alloc, reallocation on assignment, strings of deferred length.
!@ codelets: 1
!@ levels: -O0 -g ; -O2
!@ flags: -O0 ; -O3 -march=native
!@ under: -O3 -march=native ~ * ~ different ~ first at [stack]
!@ under: -O0 ~ * ~ different ~ first at [stack]
module growing
  implicit none
contains
  subroutine grow(list, text, n)
    integer, allocatable, intent(inout) :: list(:)
    character(:), allocatable, intent(inout) :: text
    integer, intent(in) :: n
    integer, allocatable :: larger(:)
    integer :: i
    do i = 1, n
      allocate (larger(size(list) + 1))
      larger(1:size(list)) = list
      larger(size(list) + 1) = i*i
      call move_alloc(larger, list)
      if (mod(i, 3) == 0) list = [list, i]
      text = text//achar(97 + mod(i, 26))
    end do
  end subroutine grow
end module growing

program main
  use growing
  implicit none
  integer, allocatable :: list(:)
  character(:), allocatable :: text
  allocate (list(1))
  list = 7
  text = 'start'
  call grow(list, text, 40)
  print *, size(list), sum(list), text
end program main
