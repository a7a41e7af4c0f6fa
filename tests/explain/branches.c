#include "kernel.h"
#define VALUES (1 << 16)
__attribute__((noinline)) long slow(int *a, int times) {
  long s = 0;
  for (int t = 0; t < times; t++)
    for (int i = 0; i < VALUES; i++) {
      if (a[i] > 128) {
        s += a[i];
        __asm__ volatile("" : "+r"(s));
      }
    }
  return s;
}
__attribute__((noinline)) long fixed(int *a, int times) {
  long s = 0;
  for (int t = 0; t < times; t++)
    for (int i = 0; i < VALUES; i++) {
      if (a[i] > 128) {
        s += a[i];
        __asm__ volatile("" : "+r"(s));
      }
    }
  return s;
}
static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }
int main(void) {
  int *a = memory(VALUES * sizeof(int)), *sorted = memory(VALUES * sizeof(int));
  long s = 0;
  unsigned state = 1;
  for (int i = 0; i < VALUES; i++)
    sorted[i] = a[i] = random_next(&state) >> 4 & 255;
  qsort(sorted, VALUES, sizeof(int), compare);
  for (int t = 0; t < 4; t++)
    s += slow(a, 10), s += fixed(sorted, 10);
  printf("%ld\n", s);
}
