// y <- a x + y over n doubles: 2 n operations.
#include <stddef.h>

size_t cere_bytes(long n) { return 2 * (size_t)n * sizeof(double); }

void cere_init(long n, void *memory) {
  double *x = memory, *y = x + n;
  for (long i = 0; i < n; i++) {
    x[i] = 1.0 / (1.0 + i);
    y[i] = i;
  }
}

void cere_kernel(long n, void *memory) {
  const double *restrict x = memory;
  double *restrict y = (double *)memory + n;
  for (long i = 0; i < n; i++)
    y[i] += 2.5 * x[i];
}
