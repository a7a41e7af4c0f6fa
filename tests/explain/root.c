#include "kernel.h"
#include <math.h>
__attribute__((noinline)) void slow(double *a, double *b, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      a[i] += sqrt(b[i]);
}
__attribute__((noinline)) void fixed(double *a, double *b, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      a[i] += b[i] * b[i];
}
int main(void) {
  double *a = doubles(SMALL), *b = doubles(SMALL);
  for (int t = 0; t < 4; t++)
    slow(a, b, 1000), fixed(a, b, 1000);
  printf("%g\n", a[5]);
}
