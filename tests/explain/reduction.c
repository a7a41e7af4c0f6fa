#include "kernel.h"
__attribute__((noinline)) long slow(long *a, long n) {
  long s = 0;
  for (long i = 0; i < n; i++)
    s += a[i];
  return s;
}
__attribute__((noinline)) long fixed(long *a, long n) {
  long s = 0;
  for (long from = 0; from < n; from += SMALL)
    for (long i = 0; i < SMALL; i++)
      s += a[i];
  return s;
}
int main(void) {
  long *a = memory(N * sizeof(long)), s = 0;
  for (int t = 0; t < 6; t++)
    s += slow(a, N), s += fixed(a, N);
  printf("%ld\n", s);
}
