#include "kernel.h"
__attribute__((noinline)) double slow(double *a, int *at, long n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (long i = 0; i < n; i += 4)
    s0 += a[at[i]], s1 += a[at[i + 1]], s2 += a[at[i + 2]], s3 += a[at[i + 3]];
  return s0 + s1 + s2 + s3;
}
__attribute__((noinline)) double fixed(double *a, int *at, long n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (long from = 0; from < n; from += SMALL)
    for (long i = 0; i < SMALL; i += 4)
      s0 += a[at[i]], s1 += a[at[i + 1]], s2 += a[at[i + 2]], s3 += a[at[i + 3]];
  return s0 + s1 + s2 + s3;
}
int main(void) {
  double *a = doubles(N), s = 0;
  int *at = memory(N * sizeof(int)), *near = memory(SMALL * sizeof(int));
  unsigned state = 1;
  for (long i = 0; i < N; i++)
    at[i] = random_next(&state) % N;
  for (long i = 0; i < SMALL; i++)
    near[i] = random_next(&state) % SMALL;
  for (int t = 0; t < 4; t++)
    s += slow(a, at, 1 << 19), s += fixed(a, near, 1 << 19);
  printf("%g\n", s);
}
