#include "kernel.h"
__attribute__((noinline)) long slow(long *next, long n) {
  long at = 0;
  for (long i = 0; i < n; i++)
    at = next[at];
  return at;
}
__attribute__((noinline)) long fixed(long *next, long n) {
  long at = 0;
  for (long i = 0; i < n; i++)
    at = next[at];
  return at;
}
// A cycle through all of n elements in random order (Sattolo).
static long *ring(long n) {
  long *a = memory(n * sizeof(long));
  unsigned state = 1;
  for (long i = 0; i < n; i++)
    a[i] = i;
  for (long i = n - 1; i > 0; i--) {
    long j = random_next(&state) % i, t = a[i];
    a[i] = a[j], a[j] = t;
  }
  return a;
}
int main(void) {
  long *a = ring(N / 2), *b = ring(SMALL), s = 0;
  for (int t = 0; t < 4; t++)
    s += slow(a, 300000), s += fixed(b, 300000);
  printf("%ld\n", s);
}
