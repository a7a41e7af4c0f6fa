// C <- A B + C with n x n matrices: 2 n^3 operations. With -DBLOCK=50 in blocks of 50 x 50, which have to divide n.
#include <stddef.h>

size_t cere_bytes(long n) { return 3 * (size_t)n * n * sizeof(double); }

void cere_init(long n, void *memory) {
  double *a = memory;
  for (long i = 0; i < 3 * n * n; i++)
    a[i] = 1.0 / (1.0 + i % 97);
}

void cere_kernel(long n, void *memory) {
  const double *restrict a = memory;
  const double *restrict b = a + n * n;
  double *restrict c = (double *)memory + 2 * n * n;
#ifdef BLOCK
  for (long i = 0; i < n; i += BLOCK)
    for (long j = 0; j < n; j += BLOCK)
      for (long k = 0; k < n; k += BLOCK)
        for (long id = i; id < i + BLOCK; id++)
          for (long kd = k; kd < k + BLOCK; kd++)
            for (long jd = j; jd < j + BLOCK; jd++)
              c[id * n + jd] += a[id * n + kd] * b[kd * n + jd];
#else
  for (long i = 0; i < n; i++)
    for (long j = 0; j < n; j++)
      for (long k = 0; k < n; k++)
        c[i * n + j] += a[i * n + k] * b[k * n + j];
#endif
}
