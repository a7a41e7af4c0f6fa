#include "kernel.h"
// Eight scattered stores for one addition.
__attribute__((noinline)) long slow(long *a, int times) {
  long s = 1;
  for (int t = 0; t < times; t++)
    for (int i = 0; i < 64; i++) {
      s += i;
      for (int k = 0; k < 8; k++)
        a[(k * 9 + i) * 8] = s;
    }
  return s;
}
__attribute__((noinline)) long fixed(long *a, int times) {
  long s = 1;
  for (int t = 0; t < times; t++)
    for (int i = 0; i < 64; i++) {
      s += i;
      __asm__ volatile("" : "+r"(s));
    }
  return s + a[0];
}
int main(void) {
  long *a = memory(SMALL * 8 * sizeof(long)), s = 0;
  for (int t = 0; t < 4; t++)
    s += slow(a, 10000), s += fixed(a, 10000);
  printf("%ld\n", s);
}
