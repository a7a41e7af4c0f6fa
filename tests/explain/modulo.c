#include "kernel.h"
__attribute__((noinline)) unsigned long slow(unsigned long *a, unsigned long *count, unsigned long m, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      count[i] += a[i] % m;
  return count[3];
}
__attribute__((noinline)) unsigned long fixed(unsigned long *a, unsigned long *count, unsigned long m, int times) {
  for (int t = 0; t < times; t++)
#pragma clang loop vectorize(disable)
    for (int i = 0; i < SMALL; i++)
      count[i] += a[i] & m;
  return count[3];
}
int main(void) {
  unsigned long *a = memory(SMALL * sizeof(long)), *count = memory(SMALL * sizeof(long)), s = 0;
  unsigned state = 1;
  for (int i = 0; i < SMALL; i++)
    a[i] = (unsigned long)random_next(&state) << 30 | random_next(&state);
  for (int t = 0; t < 4; t++)
    s += slow(a, count, 1023, 500), s += fixed(a, count, 1023, 500);
  printf("%lu\n", s);
}
