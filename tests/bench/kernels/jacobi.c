// Five-point stencil, two arrays.
#include <stdio.h>
#define N 800
static double a[N][N], b[N][N];

static __attribute__((noinline)) void sweep(double (*to)[N], double (*from)[N]) {
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            to[i][j] = 0.2 * (from[i][j] + from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
}

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = b[i][j] = (i * 3 + j * 7) % 101;
    for (int t = 0; t < 300; t++) {
        sweep(b, a);
        sweep(a, b);
    }
    printf("%.17g\n", a[N / 2][N / 3]);
}
