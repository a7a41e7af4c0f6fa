#include "kernel.h"
__attribute__((noinline)) long slow(long n) {
  long s = 0;
#pragma omp parallel for num_threads(2)
  for (long i = 0; i < n; i++)
#pragma omp atomic
    s += i & 7;
  return s;
}
__attribute__((noinline)) long fixed(long n) {
  long s[2 * 64] = {0};
#pragma omp parallel for num_threads(2)
  for (long i = 0; i < n; i++)
#pragma omp atomic
    s[(i >= n / 2) * 64] += i & 7;
  return s[0] + s[64];
}
int main(void) {
  long s = 0;
  for (int t = 0; t < 4; t++)
    s += slow(400000), s += fixed(400000);
  printf("%ld\n", s);
}
