! Procedures as regions: of a module, external, internal, with complex and character results, recursive.
!@ functions: meshes::*
!@ functions: scale
!@ functions: *inner
!@ functions: norms
!@ invocation: 1,2
!@ codelets: 6
!@ flags: -O0 ; -O3
module meshes
  implicit none
contains
  subroutine relax(x, n, weight)
    integer, intent(in) :: n
    real(8), intent(inout) :: x(n)
    real(8), intent(in) :: weight
    real(8) :: last, here
    integer :: i
    last = x(1)
    do i = 2, n - 1
      here = x(i)
      x(i) = weight*(last + x(i + 1)) + (1 - 2*weight)*here
      last = here
    end do
    x(n) = last
  end subroutine relax
  recursive function paths(row, column) result(found)
    integer, intent(in) :: row, column
    integer :: found
    if (row == 0 .or. column == 0) then
      found = 1
    else
      found = paths(row - 1, column) + paths(row, column - 1)
    end if
  end function paths
end module meshes

subroutine scale(x, n, by)
  implicit none
  integer :: n, i
  real(8) :: x(n), by
  do i = 1, n
    x(i) = x(i)*by
  end do
  if (by > 1) x(1) = by
end subroutine scale

complex(8) function norms(x, n)
  implicit none
  integer :: n, i
  real(8) :: x(n)
  norms = (0d0, 0d0)
  do i = 1, n
    norms = norms + cmplx(x(i), x(i)**2, 8)
  end do
end function norms

program functions
  use meshes
  implicit none
  integer, parameter :: n = 3000
  real(8) :: x(n), total
  complex(8) :: c, d
  complex(8), external :: norms
  integer :: i
  do i = 1, n
    x(i) = mod(i*37, 101)/10d0
  end do
  call relax(x, n, 0.2d0)
  call relax(x, n, 0.25d0)
  call scale(x, n, 0.5d0)
  call scale(x, n, 1.5d0)
  total = 0
  call inner(900)
  call inner(1000)
  c = norms(x, n)
  d = norms(x, n - 1)
  print '(2g20.12)', total, x(17)
  print '(4g20.12)', c, d
  print *, paths(6, 6), paths(5, 6)
contains
  subroutine inner(m)
    integer, intent(in) :: m
    integer :: k
    do k = 1, m
      total = total + x(k)*k
    end do
    total = total/m
  end subroutine inner
end program functions
