#include "kernel.h"
#define ROW 2048
__attribute__((noinline)) long slow(long *a) {
  long s = 0;
  for (long j = 0; j < ROW; j++)
    for (long i = 0; i < ROW; i++)
      s ^= a[i * ROW + j];
  return s;
}
__attribute__((noinline)) long fixed(long *a) {
  long s = 0;
  for (long j = 0; j < ROW; j++)
    for (long i = 0; i < ROW; i++)
      s ^= a[(i & 7) * 64 + (j & 7)];
  return s;
}
int main(void) {
  long *a = memory(N * sizeof(long)), s = 0;
  for (int t = 0; t < 6; t++)
    s += slow(a), s += fixed(a);
  printf("%ld\n", s);
}
