! Types that extend others, procedures bound to them, select type.
!@ vary: N 20 200
module m@
  use iso_c_binding
  implicit none
  type :: base
    integer(c_long) :: kept
  contains
    procedure :: value => base_value
  end type
  type, extends(base) :: wide
    integer :: more
  contains
    procedure :: value => wide_value
  end type
  type :: holder
    class(base), allocatable :: item
  end type
contains
  function base_value(self) result(v)
    class(base), intent(in) :: self
    integer(c_long) :: v
    v = self%kept * 3
  end function
  function wide_value(self) result(v)
    class(wide), intent(in) :: self
    integer(c_long) :: v
    v = self%kept * 5 + self%more
  end function
end module
function f@(x) bind(C) result(r)
  use iso_c_binding
  use m@
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  type(holder) :: all(5)
  integer :: i
  r = x
  do i = 1, 5
    if (mod(i, 2) == 0) then
      allocate (all(i)%item, source=wide(3_c_long, i))
    else
      allocate (all(i)%item, source=base(2_c_long))
    end if
  end do
  do i = 1, $N
    r = ieor(r * 31_c_long, all(1 + mod(i, 5))%item%value())
    select type (one => all(1 + mod(i, 5))%item)
    type is (wide)
      one%more = one%more + 1
    class default
      one%kept = one%kept + 1
    end select
  end do
end function
