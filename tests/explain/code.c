#include "kernel.h"
// 36,864 different instructions in each iteration, of 5 to 7 bytes each, in six chains: the processor could execute four or more in a cycle,
// but the code does not fit into the first cache.
#define ONE(n) \
  s0 += 0x12345601u + n, s1 ^= 0x22345601u + n, s2 += 0x32345601u + n, s3 ^= 0x42345601u + n, s4 += 0x52345601u + n; \
  s5 ^= 0x62345601u + n; \
  __asm__("" : "+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3), "+r"(s4), "+r"(s5));
#define FOUR(n) ONE(n) ONE(n + 1) ONE(n + 2) ONE(n + 3)
#define MANY(n) FOUR(n) FOUR(n + 4) FOUR(n + 8) FOUR(n + 12)
#define MORE(n) MANY(n) MANY(n + 16) MANY(n + 32) MANY(n + 48)
#define ALL(n) MORE(n) MORE(n + 64) MORE(n + 128) MORE(n + 192)
#define PART(name, n) \
  __attribute__((noinline)) void name(unsigned *s) { \
    unsigned s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], s4 = s[4], s5 = s[5]; \
    ALL(n) \
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3, s[4] = s4, s[5] = s5; \
  }
#define GROUP(name, n) PART(name##0, n) PART(name##1, n + 256) PART(name##2, n + 512) PART(name##3, n + 768)
#define CALL(name) name##0(s), name##1(s), name##2(s), name##3(s)
GROUP(a, 0) GROUP(b, 1024) GROUP(c, 2048) GROUP(d, 3072) GROUP(e, 4096) GROUP(f, 5120)
__attribute__((noinline)) void slow(unsigned *s, int times) {
  for (int t = 0; t < times; t++)
    CALL(a), CALL(b), CALL(c), CALL(d), CALL(e), CALL(f);
}
__attribute__((noinline)) void fixed(unsigned *s, int times) {
  for (int t = 0; t < times * 24; t++)
    a0(s);
}
int main(void) {
  unsigned s[6] = {1, 2, 3, 4, 5, 6};
  for (int t = 0; t < 4; t++)
    slow(s, 50), fixed(s, 50);
  printf("%u\n", s[0] + s[5]);
}
