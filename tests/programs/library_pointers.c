// Pointers to functions of libraries that lie in memory, where no table of the region's code names the function: such as libc and
// libm choose by processor (memcpy, log2), such as the preload library interposes (malloc), others.
//@ capture: call@*
//@ invocation: 1,2
//@ codelets: 2
//@ flags: -O0 ; -O3 -march=native -ffp-contract=off
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct functions {
    void *(*copy)(void *, const void *, size_t);
    void *(*set)(void *, int, size_t);
    size_t (*length)(const char *);
    int (*compare)(const char *, const char *);
    double (*one[4])(double);
    void *(*allocate)(size_t);
    void *(*resize)(void *, size_t);
    void (*release)(void *);
    pthread_t (*self)(void);
    int (*number)(const char *);
};
static char a[4096], b[4096];
static double v[4000];

__attribute__((noinline)) static double call(const struct functions *f, int round) {
    double sum = 0;
    for (int i = 0; i < 20; i++) {
        f->copy(a, b, 2048);
        f->set(b + i, '0' + round, 64);
        sum += f->length(b + i) + (f->compare(a, b) > 0) + f->number("17");
        for (int k = 0; k < 4; k++)
            sum += f->one[k](i + 2.5);
        char *block = f->allocate(100);
        block = f->resize(block, 1000);
        f->copy(block, b, 1000);
        sum += block[i] + (f->self() == f->self());
        f->release(block);
        for (int k = 1; k < 4000; k++)
            sum += v[k] = v[k - 1] * 0.25 + v[k] * 0.7 + a[k];
    }
    return sum;
}

int main(void) {
    struct functions *f = malloc(sizeof *f);
    *f = (struct functions){memcpy, memset, strlen, strcmp, {log2, sin, floor, cbrt}, malloc, realloc, free, pthread_self, atoi};
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += call(f, i);
    printf("%.17g\n", sum);
    free(f);
    return 0;
}
