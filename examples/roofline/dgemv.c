// y <- A x + y with an n x n matrix: 2 n^2 operations.
#include <stddef.h>

size_t cere_bytes(long n) { return ((size_t)n * n + 2 * (size_t)n) * sizeof(double); }

void cere_init(long n, void *memory) {
  double *a = memory;
  for (long i = 0; i < n * n + 2 * n; i++)
    a[i] = 1.0 / (1.0 + i % 97);
}

void cere_kernel(long n, void *memory) {
  const double *restrict a = memory;
  const double *restrict x = a + n * n;
  double *restrict y = (double *)memory + n * n + n;
  for (long i = 0; i < n; i++) {
    double sum = y[i];
    for (long j = 0; j < n; j++)
      sum += a[i * n + j] * x[j];
    y[i] = sum;
  }
}
