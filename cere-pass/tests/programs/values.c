#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int one = 1;
struct big { double a[5]; int tag; };
struct small { float x, y; };
typedef float v4 __attribute__((vector_size(16)));
typedef double v8 __attribute__((vector_size(64)));

static struct big by_value(struct big b, int n) {
  for (int i = 0; i < n; ++i) {
    b.a[i % 5] += i * b.tag;
    b.tag += one;
  }
  return b;
}
static struct small two_floats(struct small s, int n) {
  while (n--) { s.x += s.y * one; s.y -= 0.25f; }
  return s;
}
static long double wide(long double x, int n) {
  long double s = 0;
  for (int i = 1; i <= n; ++i) s += x / i;
  return s;
}
static unsigned __int128 huge(unsigned __int128 x, int n) {
  for (int i = 0; i < n; ++i) x = x * 6364136223846793005u + (unsigned)i;
  return x;
}
static v4 vectors(v4 x, v8 y, int n) {
  for (int i = 0; i < n; ++i) { x = x * 1.5f - 0.5f; y += 1.0; x[i & 3] += (float)y[i & 7]; }
  return x;
}
static _Complex double complexes(_Complex double z, int n) {
  for (int i = 0; i < n; ++i) z = z * z * 0.5 + 0.25;
  return z;
}
static int vla_in_loop(int n) {
  int s = 0;
  for (int i = 1; i < n; ++i) {
    int row[i];
    for (int j = 0; j < i; ++j) row[j] = j * i;
    s += row[i - 1] + row[i / 2];
  }
  return s;
}
static int vla_used_behind(int n) {
  int s = 0;
  for (int i = 1;; ++i) {
    int row[i + 3];
    memset(row, i, sizeof row);
    if (i > n) {
      int other[64];
      memset(other, 0x55, sizeof other);
      s += row[i] + other[i & 63];
      for (int j = 0; j < i; ++j) s += row[j];
      break;
    }
    if (row[0] == 0x0c0c0c0c && n < 3) return s + row[1];
    s ^= row[i];
  }
  return s;
}
static int vla_outside(int n) {
  double m[n][n], s = 0;
  for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) m[i][j] = i - j * one;
  for (int i = 0; i < n; ++i) s += m[i][n - 1 - i] * m[n - 1][i];
  return (int)s;
}
static int alloca_outlives(int n) {
  int *p[32], s = 0;
  for (int i = 0; i < n; ++i) { p[i] = alloca(sizeof(int) * (i + 1)); p[i][i] = i * 3; }
  char noise[256];
  memset(noise, one, sizeof noise);
  for (int i = 0; i < n; ++i) s = s * 7 + p[i][i] + noise[i];
  return s;
}
static int alloca_and_vla(int n) {
  int *p[32], s = 0;
  for (int i = 0; i < n; ++i) {
    p[i] = alloca(64);
    for (int k = 1; k < 3; ++k) { int v[k * n]; memset(v, k, sizeof v); s += v[k]; }
    p[i][0] = i;
  }
  for (int i = 0; i < n; ++i) s = s * 3 + p[i][0];
  return s;
}
static int variable(int n, ...) {
  int s = 0;
  for (int round = 0; round < 3; ++round) {
    va_list ap;
    va_start(ap, n);
    for (int i = 0; i < n; ++i)
      s = s * 5 + (i & 1 ? (int)va_arg(ap, double) : va_arg(ap, int));
    va_end(ap);
  }
  va_list ap, again;
  va_start(ap, n);
  va_copy(again, ap);
  for (int i = 0; i < n; ++i) s += i & 1 ? (int)va_arg(ap, double) : va_arg(ap, int);
  for (int i = 0; i < n; ++i) s -= i & 1 ? (int)va_arg(again, double) : va_arg(again, int) * 2;
  va_end(ap);
  va_end(again);
  return s;
}
static jmp_buf env;
static void jumper(int i) { if (i == 5) longjmp(env, i); }
static int with_setjmp(int n) {
  volatile int tries = 0;
  int got = setjmp(env);
  if (got == 0)
    for (int i = 0; i < n; ++i) { ++tries; jumper(i); }
  int s = got;
  for (int i = 0; i < n; ++i) s += i * one;
  return s * 100 + tries;
}
static int setjmp_in_loop(int n) {
  volatile int s = 0;
  for (volatile int i = 0; i < n; ++i) {
    if (setjmp(env) == 0) jumper(5 + i % 2);
    else s += i;
  }
  return s;
}
static unsigned assembly(unsigned x, int n) {
  for (int i = 0; i < n; ++i) {
    unsigned y;
    __asm__ volatile("leal 3(%1,%1,2), %0" : "=r"(y) : "r"(x));
    x = y ^ (unsigned)i;
  }
  return x;
}
static int statics(int n) {
  static int kept, table[8] = {1, 2, 3};
  for (int i = 0; i < n; ++i) { kept += i; table[kept & 7] += kept; }
  return kept + table[3];
}
static _Thread_local int local_one = 4;
static _Thread_local struct big local_big;
static int threads(int n) {
  for (int i = 0; i < n; ++i) { local_one += i; local_big.a[i % 5] += local_one; }
  return local_one + (int)local_big.a[2];
}
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int sorts(int n) {
  int a[64], s = 0;
  for (int r = 0; r < 3; ++r) {
    for (int i = 0; i < n; ++i) a[i] = (i * 37 + r * one) % 61;
    qsort(a, n, sizeof *a, compare);
    s = s * 3 + a[n / 2];
  }
  return s;
}
static double restricted(double *restrict a, const double *restrict b, int n) {
  double s = 0, *alias = a + 1;
  for (int i = 0; i + 1 < n; ++i) { a[i] += b[i] * 2; alias[i] += 1; s += a[i]; }
  return s;
}
static int aliased(int n) {
  int x = 0, s = 0, *p = &x, **pp = &p;
  for (int i = 0; i < n; ++i) { x = i; **pp += 2; *p += 2; s += x; }
  return s;
}
static int many(int a, int b, int c, int d, int e, int f, int g, double h, float i, char j, short k, long l, _Bool m) {
  int s = 0;
  for (int n = 0; n < 9; ++n) s += a + b * n - c + d - e * f + g + (int)h - (int)i + j * k - (int)l + m;
  return s;
}
int main(void) {
  struct big b = by_value((struct big){{1, 2, 3, 4, 5}, 2}, 17);
  struct small f = two_floats((struct small){1, 2}, 9);
  unsigned __int128 h = huge(12345, 40);
  v4 v = vectors((v4){1, 2, 3, 4}, (v8){0, 1, 2, 3, 4, 5, 6, 7}, 12);
  _Complex double z = complexes(0.5 + 0.25i, 6);
  printf("%.17g %.17g %d %.9g %.9g %.20Lg\n", b.a[0], b.a[4], b.tag, f.x, f.y, wide(3, 100));
  printf("%llx%016llx %a %a %a %a %a %a\n", (unsigned long long)(h >> 64), (unsigned long long)h, v[0], v[1], v[2], v[3], __real__ z, __imag__ z);
  printf("%d %d %d %d %d %d\n", vla_in_loop(20), vla_used_behind(11), vla_used_behind(2), vla_outside(9), alloca_outlives(20), alloca_and_vla(9));
  printf("%d %d %d %u %d %d\n", variable(9, 1, 2., 3, 4., 5, 6., 7, 8., 9), with_setjmp(9), setjmp_in_loop(9), assembly(7, 9), statics(9) + statics(3), threads(9) + threads(4));
  double x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[9] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
  printf("%d %.17g %d %d\n", sorts(60), restricted(x, y, 9), aliased(10), many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1));
}
