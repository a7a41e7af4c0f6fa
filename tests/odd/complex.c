// Complex numbers.
//@ vary: N 30 300
#include <complex.h>
static double complex f@_orbit[64];
word f@(word x) {
  for (int i = 0; i < 64; i++) f@_orbit[i] = (double)(x % 17) / 16 + i / 64.0 * I;
  for (int i = 0; i < $N; i++) {
    double complex *z = &f@_orbit[i % 64];
    *z = *z * *z * 0.25 + (0.1 - 0.3 * I) / (*z + 2.0);
  }
  for (int i = 0; i < 64; i++) x = mix(x, bits(creal(f@_orbit[i])) + bits(cimag(f@_orbit[i])));
  return x;
}
