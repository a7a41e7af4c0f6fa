// C = alpha A B + beta C.
#include <stdio.h>
#define N 512
static double a[N][N], b[N][N], c[N][N];

static __attribute__((noinline)) void gemm(double alpha, double beta) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            c[i][j] *= beta;
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++)
                c[i][j] += alpha * a[i][k] * b[k][j];
    }
}

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (i * j % 7) / 7.0;
            b[i][j] = (i + j) % 5 / 5.0;
        }
    for (int round = 0; round < 6; round++)
        gemm(1.1, 0.9);
    printf("%.17g\n", c[17][33]);
}
