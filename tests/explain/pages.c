#include "kernel.h"
#define PAGES 32768
// A line of each page, at another place in each.
__attribute__((noinline)) long slow(char *a) {
  long s = 0;
  for (int t = 0; t < 4; t++)
    for (long i = 0; i < PAGES; i++)
      s += *(long *)(a + i * 4096 + (i * 64 & 4032));
  return s;
}
__attribute__((noinline)) long fixed(char *a) {
  long s = 0;
  for (int t = 0; t < 4; t++)
    for (long i = 0; i < PAGES; i++)
      s += *(long *)(a + i * 4096 + (i * 64 & 4032));
  return s;
}
int main(void) {
  char *a = memory(PAGES * 4096L);
  char *b = mmap(0, PAGES * 4096L + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  b = (char *)(((long)b + (2 << 20) - 1) & -(2L << 20));
  madvise(b, PAGES * 4096L, MADV_HUGEPAGE);
  memset(b, 1, PAGES * 4096L);
  long s = 0;
  for (int t = 0; t < 4; t++)
    s += slow(a), s += fixed(b);
  printf("%ld\n", s);
}
