#include "kernel.h"
#include <math.h>
#define ROWS 1024
__attribute__((noinline)) void slow(double *a) {
#pragma omp parallel for schedule(static) num_threads(2)
  for (int i = 0; i < ROWS; i++) {
    double s = 0;
    for (int j = 0; j < i * 4; j++)
      s = s * 0.5 + a[j & (SMALL - 1)];
    a[SMALL + i] = s;
  }
}
__attribute__((noinline)) void fixed(double *a) {
#pragma omp parallel for schedule(dynamic, 16) num_threads(2)
  for (int i = 0; i < ROWS; i++) {
    double s = 0;
    for (int j = 0; j < i * 4; j++)
      s = s * 0.5 + a[j & (SMALL - 1)];
    a[SMALL + i] = s;
  }
}
int main(void) {
  double *a = doubles(2 * SMALL);
  for (int t = 0; t < 4; t++)
    slow(a), fixed(a);
  printf("%g\n", a[SMALL + 5]);
}
