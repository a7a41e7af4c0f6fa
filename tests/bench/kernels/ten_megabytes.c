// One unit, one hot loop over 10 MB.
#include <stdio.h>
#define N 1310720
static double data[N];

static __attribute__((noinline)) double smooth(int n) {
    double sum = 0;
    for (int i = 1; i < n - 1; i++) {
        data[i] = 0.25 * data[i - 1] + 0.5 * data[i] + 0.25 * data[i + 1];
        sum += data[i];
    }
    return sum;
}

int main(void) {
    for (int i = 0; i < N; i++)
        data[i] = (i * 37) % 1009;
    double sum = 0;
    for (int t = 0; t < 20; t++)
        sum += smooth(N);
    printf("%.17g\n", sum);
}
