#include "kernel.h"
__attribute__((noinline)) double slow(double *a, double x, int times) {
  double s = 0;
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i++)
      s = s * x + a[i];
  return s;
}
__attribute__((noinline)) double fixed(double *a, double x, int times) {
  double s[8] = {0};
  for (int t = 0; t < times; t++)
    for (int i = 0; i < SMALL; i += 8) {
#pragma clang loop unroll(full) vectorize(disable)
      for (int k = 0; k < 8; k++) {
        s[k] = s[k] * x + a[i + k];
        __asm__("" : "+x"(s[k]));
      }
    }
  return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}
int main(void) {
  double *a = doubles(SMALL), s = 0;
  for (int t = 0; t < 4; t++)
    s += slow(a, 0.5, 2000), s += fixed(a, 0.5, 2000);
  printf("%g\n", s);
}
