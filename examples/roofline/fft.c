// Fourier transform in place of n complex numbers, n a power of two: bit reversal, then butterflies of radix 2. A butterfly has
// 10 operations; the rotation of the next one, 8.
#include <math.h>
#include <stddef.h>

size_t cere_bytes(long n) { return 2 * (size_t)n * sizeof(double); }

void cere_init(long n, void *memory) {
  double *data = memory;
  for (long i = 0; i < 2 * n; i++)
    data[i] = 1.0 / (1.0 + i % 97);
}

static void reverse(long n, double *data) {
  for (long i = 0, j = 0; i < n; i++) {
    if (j > i)
      for (int part = 0; part < 2; part++) {
        double kept = data[2 * i + part];
        data[2 * i + part] = data[2 * j + part];
        data[2 * j + part] = kept;
      }
    long bit = n >> 1;
    for (; bit > 0 && (j & bit); bit >>= 1)
      j ^= bit;
    j |= bit;
  }
}

void cere_kernel(long n, void *memory) {
  double *data = memory;
  reverse(n, data);
  for (long half = 1; half < n; half *= 2) {
    double angle = 3.14159265358979323846 / half;
    double step_re = -2.0 * sin(0.5 * angle) * sin(0.5 * angle), step_im = sin(angle);
    double re = 1.0, im = 0.0;
    for (long offset = 0; offset < half; offset++) {
      for (long i = offset; i < n; i += 2 * half) {
        double *low = data + 2 * i, *high = low + 2 * half;
        double x = re * high[0] - im * high[1], y = re * high[1] + im * high[0];
        high[0] = low[0] - x;
        high[1] = low[1] - y;
        low[0] += x;
        low[1] += y;
      }
      double last = re;
      re += re * step_re - im * step_im;
      im += im * step_re + last * step_im;
    }
  }
}
