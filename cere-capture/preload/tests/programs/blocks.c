/* Loops within loops, the inner ones on blocks that were allocated just before and are freed just after. With an
   argument: a loop whose blocks the allocator has free afterwards, and another one on such blocks. */
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 6, WORDS = 64 * 1024 };

static double *blocks[BLOCKS];
static double total;

__attribute__((noinline)) static void fill(double x) {
    for (int b = 0; b < BLOCKS; b++)
        for (int i = 0; i < WORDS; i++) blocks[b][i] = x + i;
}

__attribute__((noinline)) static void sum(void) {
    for (int b = 0; b < BLOCKS; b++) total += blocks[b][WORDS / 2];
}

__attribute__((noinline)) static void once(double x) {
    for (int b = 0; b < BLOCKS; b++)
        if (!(blocks[b] = malloc(WORDS * sizeof *blocks[b]))) abort();
    fill(x);
    sum();
    for (int b = 0; b < BLOCKS; b++) free(blocks[b]);
}

__attribute__((noinline)) static void step(int n) {
    for (int i = 0; i < n; i++) once(i);
}

__attribute__((noinline)) static void around(int n) {
    for (int i = 0; i < n; i++) step(3);
}

enum { SMALL = 32, BYTES = 100000 };

static char *small[SMALL], *last;

static void take(void) {
    for (int b = 0; b < SMALL; b++)
        if (!(small[b] = malloc(BYTES))) abort();
}

static void give(void) {
    for (int b = 0; b < SMALL; b++) free(small[b]);
}

__attribute__((noinline)) static void scratch(int n) {
    for (int i = 0; i < n; i++) {
        take();
        for (int b = 0; b < SMALL; b++)
            for (int at = 0; at < BYTES; at += 64) small[b][at] = 1;
        last = malloc(100);
        give();
    }
}

__attribute__((noinline)) static void use(char x) {
    for (int b = 0; b < SMALL; b++)
        for (int at = 0; at < BYTES; at += 64) small[b][at] = x;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        scratch(1);
        free(last);
        take();
        use(3);
        printf("%d\n", small[5][64]);
        return 0;
    }
    once(1);
    around(2);
    step(4);
    once(2);
    printf("%g\n", total);
    return 0;
}
