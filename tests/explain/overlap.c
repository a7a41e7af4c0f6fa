#include "kernel.h"
// The compiler cannot know that the arrays do not overlap: the number of them makes too many checks.
__attribute__((noinline)) void slow(float **a, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      a[0][i] = a[1][i] * a[2][i] + a[3][i] * a[4][i];
}
__attribute__((noinline)) void fixed(float **a, int times) {
  float *restrict r = a[0], *b = a[1], *c = a[2], *d = a[3], *e = a[4];
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      r[i] = b[i] * c[i] + d[i] * e[i];
}
int main(void) {
  float *a[5];
  for (int k = 0; k < 5; k++) {
    a[k] = memory(SMALL * sizeof(float));
    for (int i = 0; i < SMALL; i++)
      a[k][i] = 1 + i * 0.001f;
  }
  for (int t = 0; t < 4; t++)
    slow(a, 1000), fixed(a, 1000);
  printf("%g\n", a[0][7]);
}
