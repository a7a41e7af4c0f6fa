#include "kernel.h"
#define ROWS 1024
__attribute__((noinline)) void slow(long *a, long *b) {
#pragma omp parallel for schedule(static) num_threads(2)
  for (int i = 0; i < ROWS; i++) {
    long s = 0;
    for (int j = 0; j < i * 8; j++)
      s += b[j & (SMALL - 1)] >> (j & 7);
    a[i] = s;
  }
}
__attribute__((noinline)) void fixed(long *a, long *b) {
#pragma omp parallel for schedule(dynamic, 16) num_threads(2)
  for (int i = 0; i < ROWS; i++) {
    long s = 0;
    for (int j = 0; j < i * 8; j++)
      s += b[j & (SMALL - 1)] >> (j & 7);
    a[i] = s;
  }
}
int main(void) {
  long *a = memory(ROWS * sizeof(long)), *b = memory(SMALL * sizeof(long));
  for (int t = 0; t < 4; t++)
    slow(a, b), fixed(a, b);
  printf("%ld\n", a[5]);
}
