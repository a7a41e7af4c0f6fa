#include "kernel.h"
#define KEYS (1 << 16)
__attribute__((noinline)) long slow(int *table, int *keys, long n) {
  long s = 0;
  for (long k = 0; k < n; k++) {
    int low = 0, high = SMALL;
    while (low + 1 < high) {
      int middle = (low + high) / 2;
      if (table[middle] <= keys[k]) {
        __asm__ volatile("");
        low = middle;
      } else {
        high = middle;
      }
    }
    s += low;
  }
  return s;
}
__attribute__((noinline)) long fixed(int *table, int *keys, long n) {
  long s = 0;
  for (long k = 0; k < n; k++) {
    int low = 0, high = SMALL;
    while (low + 1 < high) {
      int middle = (low + high) / 2;
      if (table[middle] <= keys[k]) {
        __asm__ volatile("");
        low = middle;
      } else {
        high = middle;
      }
    }
    s += low;
  }
  return s;
}
int main(void) {
  int *table = memory(SMALL * sizeof(int)), *keys = memory(KEYS * sizeof(int)), *same = memory(KEYS * sizeof(int));
  unsigned state = 1;
  long s = 0;
  for (int i = 0; i < SMALL; i++)
    table[i] = i * 16;
  for (int i = 0; i < KEYS; i++)
    keys[i] = random_next(&state) % (SMALL * 16), same[i] = 5461;
  for (int t = 0; t < 4; t++)
    s += slow(table, keys, KEYS), s += fixed(table, same, KEYS);
  printf("%ld\n", s);
}
