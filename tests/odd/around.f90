! Internal procedures that use variables of the one around them, as arguments.
!@ vary: N 20 200
!@ allowed: stack
!@ allowed: code
function f@(x) bind(C) result(r)
  use iso_c_binding
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  integer :: i
  integer(c_long) :: kept
  kept = 3
  r = x
  do i = 1, $N
    call applied(own)
  end do
contains
  subroutine own(a)
    integer(c_long), intent(inout) :: a
    kept = kept * 3 + 1
    a = ieor(a * 31_c_long, kept)
  end subroutine
  subroutine applied(what)
    interface
      subroutine what(a)
        use iso_c_binding
        integer(c_long), intent(inout) :: a
      end subroutine
    end interface
    call what(r)
  end subroutine
end function
