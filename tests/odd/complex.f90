! Complex numbers and quadruple steps through libm.
!@ allowed: something else with these flags
!@ vary: N 20 300
function f@(x) bind(C) result(r)
  use iso_c_binding
  implicit none
  integer(c_long), value :: x
  integer(c_long) :: r
  complex(8) :: z(16)
  integer :: i, k
  do i = 1, 16
    z(i) = cmplx(mod(x, 17_c_long) / 16d0, i / 16d0, 8)
  end do
  do i = 1, $N
    k = 1 + mod(i, 16)
    z(k) = z(k)**2 * 0.25d0 + (0.1d0, -0.3d0) / (z(k) + 2) + conjg(z(17 - k)) * 0.125d0
    if (abs(z(k)) > 4) z(k) = z(k) / 16
  end do
  r = x
  do i = 1, 16
    r = ieor(r * 31_c_long, transfer(real(z(i), 8), r)) + transfer(aimag(z(i)), r)
  end do
end function
