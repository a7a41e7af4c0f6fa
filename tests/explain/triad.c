#include "kernel.h"
__attribute__((noinline)) void slow(double *a, double *b, double *c, long n) {
  for (long i = 0; i < n; i++)
    a[i] = b[i] + 3.0 * c[i];
}
__attribute__((noinline)) void fixed(double *a, double *b, double *c, long n) {
  for (long from = 0; from < n; from += SMALL)
    for (long i = 0; i < SMALL; i++)
      a[i] = b[i] + 3.0 * c[i];
}
int main(void) {
  double *a = doubles(N), *b = doubles(N), *c = doubles(N);
  for (int t = 0; t < 6; t++)
    slow(a, b, c, N), fixed(a, b, c, N);
  printf("%g\n", a[N / 2]);
}
