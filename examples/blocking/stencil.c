// Stencils of 5 points in two dimensions and of 7 in three, with the block sizes that `cere machine --blocking stencil` prints:
//
//   clang -O3 -march=native $(cere machine --blocking stencil | tail -1) stencil.c -o stencil && ./stencil
//
// Without arguments it prints the rates. With any, it reads lines `2 BX` and `3 BX BY` and answers each with the seconds of
// processor time of one sweep.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef BX2_L1
#define BX2_L1 1016
#endif
#ifndef BX3
#define BX3 512
#endif
#ifndef BY3
#define BY3 64
#endif

// Rows of 128 KiB; planes of 2 MiB. Arrays of 67 MB are beyond most caches.
enum { NX2 = 16386, NY2 = 512, NX3 = 514, NY3 = 514, NZ3 = 32 };

static long least(long a, long b) { return a < b ? a : b; }

static void five(const double *restrict u, double *restrict v, long bx) {
    for (long x = 1; x < NX2 - 1; x += bx) {
        long end = least(x + bx, NX2 - 1);
        for (long j = 1; j < NY2 - 1; j++) {
            const double *restrict row = u + j * NX2;
            for (long i = x; i < end; i++)
                v[j * NX2 + i] = 0.25 * (row[i - 1] + row[i + 1] + row[i - NX2] + row[i + NX2]) - row[i];
        }
    }
}

static void seven(const double *restrict u, double *restrict v, long bx, long by) {
    const long plane = NX3 * NY3;
    for (long y = 1; y < NY3 - 1; y += by)
        for (long x = 1; x < NX3 - 1; x += bx) {
            long end = least(x + bx, NX3 - 1), below = least(y + by, NY3 - 1);
            for (long k = 1; k < NZ3 - 1; k++)
                for (long j = y; j < below; j++) {
                    const double *restrict row = u + k * plane + j * NX3;
                    double *restrict to = v + k * plane + j * NX3;
                    for (long i = x; i < end; i++)
                        to[i] = (row[i - 1] + row[i + 1] + row[i - NX3] + row[i + NX3] + row[i - plane] + row[i + plane]) / 8 - row[i];
                }
        }
}

// A check of what was computed, which also keeps it from being optimised out.
static int right(const double *u, const double *v, int dimensions) {
    long n = dimensions == 2 ? NX2 : NX3, plane = NX3 * NY3, at = dimensions == 2 ? (NY2 / 2) * n + n - 2 : plane * (NZ3 - 2) + n * 9 + 7;
    double sum = u[at - 1] + u[at + 1] + u[at - n] + u[at + n];
    double want = dimensions == 2 ? 0.25 * sum - u[at] : (sum + u[at - plane] + u[at + plane]) / 8 - u[at];
    double off = want - v[at];
    return off * off < 1e-20;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double *allocate(long elements) {
    double *room = aligned_alloc(4096, (8 * elements + 4095) / 4096 * 4096);
    if (!room) {
        fprintf(stderr, "no memory for %ld doubles\n", elements);
        exit(1);
    }
    for (long i = 0; i < elements; i++)
        room[i] = i % 9;
    return room;
}

int main(int argc, char **argv) {
    (void)argv;
    long elements = (long)NX2 * NY2 > (long)NX3 * NY3 * NZ3 ? (long)NX2 * NY2 : (long)NX3 * NY3 * NZ3;
    double *u = allocate(elements), *v = allocate(elements);
    int dimensions;
    long bx = BX2_L1, by = BY3;
    if (argc < 2) {
        double start = now();
        five(u, v, BX2_L1);
        double middle = now();
        if (!right(u, v, 2))
            return 1;
        seven(u, v, BX3, BY3);
        double end = now();
        if (!right(u, v, 3))
            return 1;
        printf("5 points: %.1f million a second\n", 1e-6 * (NX2 - 2) * (NY2 - 2) / (middle - start));
        printf("7 points: %.1f million a second\n", 1e-6 * (NX3 - 2) * (NY3 - 2) * (NZ3 - 2) / (end - middle));
        return 0;
    }
    while (scanf("%d %ld", &dimensions, &bx) == 2 && (dimensions == 2 || scanf("%ld", &by) == 1)) {
        if (bx < 1 || by < 1)
            return 2;
        double start = now();
        if (dimensions == 2)
            five(u, v, bx);
        else
            seven(u, v, bx, by);
        double seconds = now() - start;
        if (!right(u, v, dimensions)) {
            fprintf(stderr, "wrong result with BX %ld, BY %ld\n", bx, by);
            return 1;
        }
        printf("%.9f\n", seconds);
        fflush(stdout);
    }
    return 0;
}
