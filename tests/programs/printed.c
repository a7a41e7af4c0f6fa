// What a region prints is compared, however it leaves: written out or not, by lines, without a buffer, to standard error,
// around text that was there before.
//@ levels: -O2 ; -O0
//@ invocation: 2
//@ codelets: 6
//@ flags: -O0 ; -O3
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double values[512];

static __attribute__((noinline)) double sum(int from) {
    double s = 0;
    for (int i = from; i < 512; i++)
        s += values[i] * values[511 - i];
    return s;
}
static __attribute__((noinline)) void kept(int n) {
    for (int i = 0; i < n; i++)
        printf("%.17g\n", sum(i));
}
static __attribute__((noinline)) void flushed(int n) {
    for (int i = 0; i < n; i++) {
        printf("%.17g ", sum(i));
        if (i % 3 == 1)
            fflush(stdout);
    }
}
static __attribute__((noinline)) void many(int n) {
    for (int i = 0; i < n; i++)
        printf("%.17g,", sum(i % 500));
}
static __attribute__((noinline)) void errors(int n) {
    for (int i = 0; i < n; i++)
        fprintf(stderr, "%.17g of %d\n", sum(i), n);
}
static __attribute__((noinline)) void direct(int n) {
    char text[64];
    for (int i = 0; i < n; i++) {
        int length = sprintf(text, "%.17g\n", sum(i));
        if (write(1, text, length) != length)
            return;
    }
    memset(text, 0, sizeof text);
}
static __attribute__((noinline)) int blocks(int n) {
    static char block[9000];
    memset(block, 'a', sizeof block);
    int done = 0;
    for (int i = 0; i < n; i++) {
        block[i] = '\n';
        done += fwrite(block, 1, sizeof block - i, stdout) > 0;
    }
    return done;
}

int main(void) {
    for (int i = 0; i < 512; i++)
        values[i] = 1.0 / (i + 3);
    for (int round = 0; round < 3; round++) {
        kept(5);
        flushed(5);
        printf("between ");
        many(900);
        errors(4);
        direct(3);
        printf("%d\n", blocks(4));
    }
    return 0;
}
