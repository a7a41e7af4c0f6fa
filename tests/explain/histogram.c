#include "kernel.h"
#define VALUES (1 << 16)
__attribute__((noinline)) long slow(long *count, unsigned char *a, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < VALUES; i++)
      count[a[i]]++;
  return count[3];
}
// The same, of values that differ from one to the next.
__attribute__((noinline)) long fixed(long *count, unsigned char *a, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < VALUES; i++)
      count[a[i]]++;
  return count[3];
}
int main(void) {
  long *count = memory(256 * sizeof(long)), s = 0;
  unsigned char *a = memory(VALUES), *b = memory(VALUES);
  memset(a, 3, VALUES);
  for (int i = 0; i < VALUES; i++)
    b[i] = i;
  for (int t = 0; t < 4; t++)
    s += slow(count, a, 10), s += fixed(count, b, 10);
  printf("%ld\n", s);
}
