#include "kernel.h"
// 6144 different instructions in each iteration, long ones, which need nothing of one another but in four chains.
#define ONE(n) s0 = (s0 + 0x12345601u + n) ^ 0x01234567u, s1 = (s1 + 0x22345601u + n) ^ 0x11234567u, s2 = (s2 + 0x32345601u + n) ^ 0x21234567u; __asm__("" : "+r"(s0), "+r"(s1), "+r"(s2));
#define FOUR(n) ONE(n) ONE(n + 1) ONE(n + 2) ONE(n + 3)
#define MANY(n) FOUR(n) FOUR(n + 4) FOUR(n + 8) FOUR(n + 12)
#define MORE(n) MANY(n) MANY(n + 16) MANY(n + 32) MANY(n + 48)
#define ALL(n) MORE(n) MORE(n + 64) MORE(n + 128) MORE(n + 192)
__attribute__((noinline)) unsigned slow(int times) {
  unsigned s0 = 1, s1 = 2, s2 = 3;
  for (int t = 0; t < times; t++) {
    ALL(0) ALL(256) ALL(512) ALL(768)
  }
  return s0 + s1 + s2;
}
__attribute__((noinline)) unsigned fixed(int times) {
  unsigned s0 = 1, s1 = 2, s2 = 3;
  for (int t = 0; t < times * 64; t++) {
    MANY(0)
  }
  return s0 + s1 + s2;
}
int main(void) {
  unsigned s = 0;
  for (int t = 0; t < 4; t++)
    s += slow(200), s += fixed(200);
  printf("%u\n", s);
}
