// Addresses of labels in captured memory: in constant tables, as distances, in a local array, in cells on the heap, in the state
// of a generator. Each function collects rounding errors, which fused multiply-add changes (tests/tests/all/addresses.rs).
// No -O2: there the harness links hybrids, which labels in memory refuse.
//@ levels: -O0 -g ; -Os
//@ codelets: 5
//@ loop-refused: * ~ computed goto in the loop
//@ flags: -O0 ; -O3 ; -Os -fno-jump-tables
#include <stdio.h>
#include <stdlib.h>

enum { N = 64, ROUNDS = 100 };
static double x[N], square[N], result[5];
static unsigned char code[N];

#define PROGRAM(GO)                                                                                                            \
    int pc = 0;                                                                                                                \
    double r = 0;                                                                                                              \
    GO;                                                                                                                        \
plus:                                                                                                                          \
    r += x[pc] * x[pc] - square[pc];                                                                                           \
    pc++;                                                                                                                      \
    GO;                                                                                                                        \
minus:                                                                                                                         \
    r -= 2 * (x[pc] * x[pc] - square[pc]);                                                                                     \
    pc++;                                                                                                                      \
    GO;                                                                                                                        \
stop:                                                                                                                          \
    return r

__attribute__((noinline)) static double table(void) {
    static void *const go[] = {&&plus, &&minus, &&stop};
    PROGRAM(goto *go[code[pc]]);
}

__attribute__((noinline)) static double distances(void) {
    static const int go[] = {&&plus - &&plus, &&minus - &&plus, &&stop - &&plus};
    PROGRAM(goto *(&&plus + go[code[pc]]));
}

// The distances come from memory that an earlier call wrote.
static long kept[3];
__attribute__((noinline)) static double kept_distances(int prepare) {
    if (prepare) {
        kept[0] = 0;
        kept[1] = (char *)&&minus - (char *)&&plus;
        kept[2] = (char *)&&stop - (char *)&&plus;
        return 0;
    }
    PROGRAM(goto *(&&plus + kept[code[pc]]));
}

// Threaded code: each cell on the heap is a label.
static void **cells;
__attribute__((noinline)) static double threaded(int prepare) {
    void *go[] = {&&plus, &&minus, &&stop};
    if (prepare) {
        cells = malloc(N * sizeof *cells);
        for (int i = 0; i < N; i++)
            cells[i] = go[code[i]];
        return 0;
    }
    PROGRAM(goto *cells[pc]);
}

// It goes on where its last call ended, also if that came before the region.
struct generator {
    void *at;
    int i;
};
__attribute__((noinline)) static double next(struct generator *g) {
    if (g->at)
        goto *g->at;
    for (;; g->i = (g->i + 1) % N) {
        g->at = &&one;
        return x[g->i] * x[g->i] - square[g->i];
    one:
        g->at = &&two;
        return -2 * (x[g->i] * x[g->i] - square[g->i]);
    two:;
    }
}

__attribute__((noinline)) static void change(int i) {
    x[0] += i;
    volatile double rounded = x[0] * x[0];
    square[0] = rounded;
}

__attribute__((noinline)) static struct generator *prepare(void) {
    for (int i = 0; i < N; i++) {
        volatile double rounded = (x[i] = 1.0 / (i + 3)) * x[i];
        square[i] = rounded;
        code[i] = i == N - 1 ? 2 : i * 5 % 3 > 1;
    }
    kept_distances(1);
    threaded(1);
    struct generator *g = calloc(1, sizeof *g);
    next(g);
    return g;
}

int main(void) {
    struct generator *g = prepare();
    for (int i = 0; i < ROUNDS; i++) {
        change(i);
        result[0] += table();
    }
    for (int i = 0; i < ROUNDS; i++) {
        change(i);
        result[1] += distances();
    }
    for (int i = 0; i < ROUNDS; i++) {
        change(i);
        result[2] += kept_distances(0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        change(i);
        result[3] += threaded(0);
    }
    for (int i = 0; i < ROUNDS * N; i++)
        result[4] += next(g);
    for (int i = 0; i < 5; i++)
        printf("%.17g\n", result[i]);
    return 0;
}
