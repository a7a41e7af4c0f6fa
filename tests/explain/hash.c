#include "kernel.h"
__attribute__((noinline)) unsigned long slow(unsigned long *a, int times) {
  unsigned long h = 7;
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      h = (h ^ a[i]) * 0x100000001b3ul;
  return h;
}
__attribute__((noinline)) unsigned long fixed(unsigned long *a, int times) {
  unsigned long h[4] = {7, 7, 7, 7};
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i += 4) {
#pragma clang loop unroll(full) vectorize(disable)
      for (int k = 0; k < 4; k++) {
        h[k] = (h[k] ^ a[i + k]) * 0x100000001b3ul;
        __asm__("" : "+r"(h[k]));
      }
    }
  return h[0] ^ h[1] ^ h[2] ^ h[3];
}
int main(void) {
  unsigned long *a = memory(SMALL * sizeof(long)), s = 0;
  for (int t = 0; t < 4; t++)
    s += slow(a, 2000), s += fixed(a, 2000);
  printf("%lu\n", s);
}
