// Variable-length arrays, alloca in and around the region, arrays of several MB on the stack, used by reference.
//@ codelets: 4
//@ flags: -O0 ; -O3 -march=native
#include <alloca.h>
#include <stdio.h>
#include <string.h>

static __attribute__((noinline)) long vla(int n) {
    long values[n];
    memset(values, 0, sizeof values);
    long sum = 0;
    for (int i = 0; i < 10 * n; i++) {
        long scratch[i % 7 + 1];
        memset(scratch, i & 0xff, sizeof scratch);
        values[i % n] += scratch[i % 7] & 0xffff;
        sum += values[(i * 3) % n];
    }
    return sum;
}

static __attribute__((noinline)) long with_alloca(int n) {
    char *base = alloca((size_t)n);
    memset(base, 3, (size_t)n);
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += base[i] * i;
    return sum;
}

static __attribute__((noinline)) double large(int n) {
    double a[300000], b[300000];
    for (int i = 0; i < 300000; i++) {
        a[i] = i * 0.5;
        b[i] = 1.0 / (i + 1);
    }
    double sum = 0;
    for (int i = n; i < 300000 - n; i++) {
        a[i] = (a[i - 1] + a[i + 1]) * 0.5 + b[i];
        sum += a[i];
    }
    return sum + b[n];
}

int main(int argc, char **argv) {
    (void)argv;
    printf("%ld %ld %.17g\n", vla(100 * argc), with_alloca(5000 * argc), large(argc));
}
