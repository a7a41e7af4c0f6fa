#include "kernel.h"
#define VALUES (1 << 16)
__attribute__((noinline)) long slow(long *count, unsigned char *a, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < VALUES; i++)
      count[a[i]]++;
  return count[3];
}
__attribute__((noinline)) long fixed(long *count, unsigned char *a, int times) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < VALUES; i += 8)
      for (int k = 0; k < 8; k++)
        count[k * 256 + a[i + k]]++;
  return count[3];
}
int main(void) {
  long *count = memory(8 * 256 * sizeof(long)), s = 0;
  unsigned char *a = memory(VALUES);
  memset(a, 3, VALUES);
  for (int t = 0; t < 4; t++)
    s += slow(count, a, 10), s += fixed(count, a, 10);
  printf("%ld\n", s);
}
