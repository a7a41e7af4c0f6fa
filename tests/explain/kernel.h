// What the kernels share: each has a region `slow` of a known cause, and `fixed`, which does as much without it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define N (1 << 22)
#define SMALL 1024
// Memory that is touched, and lies in small pages.
static void *memory(size_t bytes) {
  char *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    exit(1);
  madvise(p, bytes, MADV_NOHUGEPAGE);
  memset(p, 1, bytes);
  return p;
}
static double *doubles(size_t n) {
  double *a = memory(n * sizeof(double));
  for (size_t i = 0; i < n; i++)
    a[i] = 1.0 + (i % 97) * 0.001;
  return a;
}
static unsigned random_next(unsigned *state) { return *state = *state * 1664525u + 1013904223u, *state >> 8; }
