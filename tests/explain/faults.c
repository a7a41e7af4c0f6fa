#include "kernel.h"
#define BYTES (16L << 20)
static char *fresh(void) {
  char *a = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(a, BYTES, MADV_NOHUGEPAGE);
  return a;
}
__attribute__((noinline)) void slow(char *a) {
  for (long i = 0; i < BYTES; i += 64)
    a[i] = 1;
}
__attribute__((noinline)) void fixed(char *a) {
  for (long i = 0; i < BYTES; i += 64)
    a[i] = 1;
}
int main(void) {
  int s = 0;
  for (int t = 0; t < 6; t++) {
    char *a = fresh();
    slow(a);
    memset(a, 0, BYTES);
    fixed(a);
    s += a[64];
    munmap(a, BYTES);
  }
  printf("%d\n", s);
}
