// LU factorisation without pivoting, in place.
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) void factor(int n, double *a) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) {
            for (int k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
            a[i * n + j] /= a[j * n + j];
        }
        for (int j = i; j < n; j++)
            for (int k = 0; k < i; k++)
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
}

int main(void) {
    int n = 500;
    double *a = malloc(sizeof(double) * (size_t)(n * n));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i * n + j] = i == j ? n : ((i * j) % 13) / 13.0;
    factor(n, a);
    printf("%.17g\n", a[n * n - 1]);
}
