// A state of 80 MiB: what a replay reads of the package is let go of page by page.
//@ levels: -O2
//@ flags: -O3
#include <stdio.h>

enum { N = 10 << 20 };
static double a[N];

__attribute__((noinline)) static double sweep(double s) {
    double sum = 0;
    for (long i = 0; i < N; i++) {
        if (i % 3)
            a[i] = a[i] * s + 1;
        sum += a[i];
    }
    return sum;
}

int main(void) {
    double sum = 0;
    for (int k = 1; k < 4; k++)
        sum += sweep(1.0 / k);
    printf("%.17g\n", sum);
    return 0;
}
