#include "kernel.h"
// Single values, as the loop is told not to be vectorised.
__attribute__((noinline)) void slow(float *restrict a, float *b, int times) {
  for (int t = 0; t < times; t++)
#pragma clang loop vectorize(disable) interleave(disable)
    for (int i = 0; i < SMALL; i++)
      a[i] = a[i] * 0.5f + b[i] * b[i];
}
__attribute__((noinline)) void fixed(float *restrict a, float *b, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      a[i] = a[i] * 0.5f + b[i] * b[i];
}
int main(void) {
  float *a = memory(SMALL * sizeof(float)), *b = memory(SMALL * sizeof(float));
  for (int i = 0; i < SMALL; i++)
    a[i] = b[i] = 1 + i * 0.001f;
  for (int t = 0; t < 4; t++)
    slow(a, b, 1000), fixed(a, b, 1000);
  printf("%g\n", a[7]);
}
