// Loops whose modelled times are compared with measured ones (docs/measured.md, "How near is a modelled processor?").
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#define N 48
#define M 1024
typedef double mat[N][N];
static mat A, B, C, D;
static double x[M], y[M], z[M], big1[1 << 21], big2[1 << 21], big3[1 << 21];
static int idx[M], hist[256];
static unsigned char bytes[4096];
static float fx[M], fy[M];
#define K __attribute__((noinline)) void
#define REP(n) for (int r = 0; r < n; r++)
K gemm(void) { REP(20) for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) C[i][j] *= 0.5; REP(20) for (int i = 0; i < N; i++) for (int k = 0; k < N; k++) for (int j = 0; j < N; j++) C[i][j] += 1.5 * A[i][k] * B[k][j]; }
K dot_ijk(void) { REP(10) for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { double s = 0; for (int k = 0; k < N; k++) s += A[i][k] * B[k][j]; D[i][j] = s; } }
K atax(void) { REP(200) for (int i = 0; i < N; i++) { double t = 0; for (int j = 0; j < N; j++) t += A[i][j] * x[j]; for (int j = 0; j < N; j++) y[j] += A[i][j] * t * 1e-9; } }
K jacobi2d(void) { REP(200) { for (int i = 1; i < N - 1; i++) for (int j = 1; j < N - 1; j++) B[i][j] = 0.2 * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]); for (int i = 1; i < N - 1; i++) for (int j = 1; j < N - 1; j++) A[i][j] = 0.2 * (B[i][j] + B[i][j - 1] + B[i][j + 1] + B[i + 1][j] + B[i - 1][j]); } }
K seidel2d(void) { REP(60) for (int i = 1; i < N - 1; i++) for (int j = 1; j < N - 1; j++) A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i][j + 1] + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) / 9.0; }
K triad_l1(void) { REP(2000) for (int i = 0; i < M; i++) x[i] = y[i] + 3.0 * z[i]; }
K triad_mem(void) { for (int i = 0; i < 1 << 21; i++) big1[i] = big2[i] + 3.0 * big3[i]; }
K sum_reduce(void) { REP(2000) { double s = 0; for (int i = 0; i < M; i++) s += x[i]; y[0] = s; } }
K divide(void) { REP(500) for (int i = 0; i < M; i++) z[i] = x[i] / (1.0 + y[i] * y[i]); }
K root(void) { REP(500) for (int i = 0; i < M; i++) z[i] = __builtin_sqrt(x[i] * x[i] + 1.0); }
K horner(void) { REP(300) for (int i = 0; i < M; i++) { double v = x[i] * 1e-3, s = 1; s = s * v + 2; s = s * v + 3; s = s * v + 4; s = s * v + 5; s = s * v + 6; s = s * v + 7; y[i] = s; } }
K recurrence(void) { REP(500) for (int i = 1; i < M; i++) x[i] = 0.5 * x[i - 1] + 0.25 * z[i]; }
K gather(void) { REP(1000) for (int i = 0; i < M; i++) y[i] = x[idx[i]]; }
K histogram(void) { REP(300) for (int i = 0; i < 4096; i++) hist[bytes[i]]++; }
K saxpy(void) { REP(4000) for (int i = 0; i < M; i++) fy[i] += 1e-6f * fx[i]; }
K search(void) { int n = 0; REP(300) for (int i = 0; i < M; i++) if (x[i] > y[(i * 7) & (M - 1)]) n++; hist[0] = n; }
K hash(void) { unsigned h = 17; REP(100) for (int i = 0; i < 4096; i++) h = (h ^ bytes[i]) * 16777619u; hist[1] = h & 0xffff; }
K trmm(void) { REP(20) for (int i = 0; i < N; i++) for (int k = i + 1; k < N; k++) for (int j = 0; j < N; j++) D[i][j] += 1e-3 * A[k][i] * B[k][j]; }
K floyd(void) { REP(10) for (int k = 0; k < N; k++) for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) if (D[i][k] + D[k][j] < D[i][j]) D[i][j] = D[i][k] + D[k][j]; }
K expo(void) { REP(20) for (int i = 0; i < M; i++) z[i] = exp(-x[i] * x[i]); }
int main(void) {
  for (int t = 0; t < 30; t++) {
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { A[i][j] = 1 + (i * j % 7) * 0.1; B[i][j] = 2 + (i + j) % 5 * 0.1; C[i][j] = 1; D[i][j] = (i * 13 + j * 7) % 31; }
    for (int i = 0; i < M; i++) { x[i] = (i % 97) * 0.01; y[i] = (i % 89) * 0.011; z[i] = i % 11; idx[i] = (i * 37) % M; fx[i] = i; fy[i] = 1; }
    if (!t) for (int i = 0; i < 1 << 21; i++) { big2[i] = i; big3[i] = t + i % 7; }
    for (int i = 0; i < 4096; i++) bytes[i] = (unsigned)(i * 2654435761u) >> 24;
    gemm(); dot_ijk(); atax(); jacobi2d(); seidel2d(); triad_l1(); triad_mem(); sum_reduce(); divide(); root(); horner(); recurrence(); gather(); histogram(); saxpy(); search(); hash(); trmm(); floyd(); expo();
  }
  printf("%g %g %d\n", C[3][4] + D[1][2], z[7] + y[3] + x[3] + big1[5], hist[3]);
}
