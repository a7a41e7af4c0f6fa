/* Streams, a chain, and integers: three kinds of loops that no metric confuses. */
#include <stdio.h>
#include <stdlib.h>

#ifndef ONE
#define ONE 1
#endif
#define N 40000
/* So many that what happens once, as the first touch of a page, stays below what matters. */
#define ROUNDS 400

static double a[N], b[N], c[N];
static unsigned table[N];

__attribute__((noinline)) static void triad(double s) {
  for (int i = 0; i < N; i++)
    a[i] = b[i] + s * c[i];
}

__attribute__((noinline)) static double chain(double x) {
  for (int i = 0; i < 3 * N; i++)
    x = x * 0.999999 + 1.0 / (1.0 + x);
  return x;
}

__attribute__((noinline)) static unsigned scramble(unsigned x) {
  for (int i = 0; i < 2 * N; i++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    table[x % N] += x & 1 ? i : -i;
  }
  return x;
}

#if ONE == 2
__attribute__((noinline)) static void scale(double s) {
  for (int i = 0; i < N; i++)
    b[i] = s * a[i] + c[i];
}
#endif

int main(void) {
  double x = 1.0;
  unsigned seed = 2463534242u;
  for (int i = 0; i < N; i++) {
    b[i] = i * 0.5;
    c[i] = N - i;
  }
  for (int round = 0; round < ROUNDS; round++) {
    triad(1.0 + round);
    x = chain(x);
    seed = scramble(seed);
#if ONE == 2
    scale(0.25);
#endif
  }
  printf("%.17g %.17g %u %u\n", a[N / 3], x, seed, table[7]);
  return 0;
}
