! Procedure pointers, and procedures that use variables of the one around them.
!@ vary: N 20 200
!@ allowed: stack
!@ allowed: code
module m@
  abstract interface
    function step(a) result(b)
      use iso_c_binding
      integer(c_long), intent(in) :: a
      integer(c_long) :: b
    end function
  end interface
end module
function f@(x) bind(C) result(r)
  use iso_c_binding
  use m@
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  procedure(step), pointer :: way => null()
  integer :: i
  integer(c_long) :: kept
  kept = 3
  r = x
  do i = 1, $N
    way => first
    if (mod(i, 3) == 0) way => second
    r = ieor(r * 31_c_long, way(r))
    r = r + applied(way, kept)
  end do
contains
  function first(a) result(b)
    integer(c_long), intent(in) :: a
    integer(c_long) :: b
    b = a + 7
  end function
  function second(a) result(b)
    integer(c_long), intent(in) :: a
    integer(c_long) :: b
    b = ieor(a, 255_c_long)
  end function
  function applied(what, a) result(b)
    procedure(step) :: what
    integer(c_long), intent(in) :: a
    integer(c_long) :: b
    b = what(a)
  end function
end function
