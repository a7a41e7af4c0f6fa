#include "kernel.h"
__attribute__((noinline)) void slow(double *a, double *b, double *c, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      a[i] = b[i] / c[i] + a[i];
}
__attribute__((noinline)) void fixed(double *a, double *b, double *c, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      a[i] = b[i] * c[i] + a[i];
}
int main(void) {
  double *a = doubles(SMALL), *b = doubles(SMALL), *c = doubles(SMALL);
  for (int t = 0; t < 4; t++)
    slow(a, b, c, 1000), fixed(a, b, c, 1000);
  printf("%g\n", a[5]);
}
