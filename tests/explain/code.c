#include "kernel.h"
// 6144 different instructions in each iteration, of 6 or 7 bytes each, in six chains: the processor could execute four or more in a cycle,
// and reads 16 bytes of code in one.
#define ONE(n) \
  s0 += 0x12345601u + n, s1 ^= 0x22345601u + n, s2 += 0x32345601u + n, s3 ^= 0x42345601u + n, s4 += 0x52345601u + n; \
  s5 ^= 0x62345601u + n; \
  __asm__("" : "+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3), "+r"(s4), "+r"(s5));
#define FOUR(n) ONE(n) ONE(n + 1) ONE(n + 2) ONE(n + 3)
#define MANY(n) FOUR(n) FOUR(n + 4) FOUR(n + 8) FOUR(n + 12)
#define MORE(n) MANY(n) MANY(n + 16) MANY(n + 32) MANY(n + 48)
#define ALL(n) MORE(n) MORE(n + 64) MORE(n + 128) MORE(n + 192)
__attribute__((noinline)) unsigned slow(int times) {
  unsigned s0 = 1, s1 = 2, s2 = 3, s3 = 4, s4 = 5, s5 = 6;
  for (int t = 0; t < times; t++) {
    ALL(0) ALL(256) ALL(512) ALL(768)
  }
  return s0 + s1 + s2 + s3 + s4 + s5;
}
__attribute__((noinline)) unsigned fixed(int times) {
  unsigned s0 = 1, s1 = 2, s2 = 3, s3 = 4, s4 = 5, s5 = 6;
  for (int t = 0; t < times * 64; t++) {
    MANY(0)
  }
  return s0 + s1 + s2 + s3 + s4 + s5;
}
int main(void) {
  unsigned s = 0;
  for (int t = 0; t < 4; t++)
    s += slow(200), s += fixed(200);
  printf("%u\n", s);
}
