// Kernels whose metrics have closed forms at -O1. Each is a region of its own.
#include <stdio.h>
#include <stdlib.h>

#define N 4096
#define ROUNDS 16

static double x[64 * N], y[N];
static int coins[N];
static struct node {
  struct node *next;
  long pad[7];
} nodes[N];
static volatile long heads;

#define KERNEL __attribute__((noinline))

KERNEL double serial(int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i];
  return sum;
}

KERNEL double four(int n) {
  double a = 0, b = 0, c = 0, d = 0;
  for (int i = 0; i < n; i += 4) {
    a += x[i];
    b += x[i + 1];
    c += x[i + 2];
    d += x[i + 3];
  }
  return a + b + c + d;
}

KERNEL void scale(double s, int n) {
  for (int i = 0; i < n; i++)
    y[i] = s * x[i];
}

// Each value goes through memory to the next.
KERNEL void carry(volatile double *v, int n) {
  for (int i = 1; i < n; i++)
    v[i] = v[i - 1] * 0.5;
}

KERNEL struct node *chase(struct node *p, int n) {
  for (int i = 0; i < n; i++)
    p = p->next;
  return p;
}

KERNEL void toss(const int *coin, int n) {
  for (int i = 0; i < n; i++)
    if (coin[i])
      heads = i;
}

// A line of each eighth double, again and again.
KERNEL double sweep(int rounds, int n) {
  double sum = 0;
  for (int r = 0; r < rounds; r++)
    for (int i = 0; i < n; i++)
      sum += x[8 * i];
  return sum;
}

KERNEL double columns(int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[64 * i];
  return sum;
}

int main(void) {
  for (int i = 0; i < 64 * N; i++)
    x[i] = 1 + i % 7;
  // A cycle through all nodes, a prime apart.
  for (int i = 0; i < N; i++)
    nodes[i].next = &nodes[(i + 1543) % N];
  // A quarter of the tosses, by a generator of 31 bits.
  unsigned long state = 1;
  for (int i = 0; i < N; i++) {
    state = state * 1103515245 + 12345 & 0x7fffffff;
    coins[i] = (state >> 16) % 4 == 0;
  }
  double sum = serial(N) + four(N) + sweep(ROUNDS, N / 4) + columns(N);
  scale(0.25, N);
  carry(y, N);
  toss(coins, N);
  printf("%g %g %ld %d\n", sum, y[5], heads, (int)(chase(nodes, N) - nodes));
  return 0;
}
