// C += A B in double precision, column by column, with the block sizes that `cere machine --blocking dgemm` prints:
//
//   clang -O3 -march=native $(cere machine --blocking dgemm | tail -1) dgemm.c -o dgemm && ./dgemm
//
// Without arguments it prints the rate for matrices of 1024. With a size, it reads lines `KC MC NC` and answers each with the
// seconds of processor time of one product of that size.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef LANES
#if defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
#endif
#ifndef MR
#define MR (4 * LANES)
#endif
#ifndef NR
#define NR 2
#endif
#ifndef KC
#define KC 128
#endif
#ifndef MC
#define MC 256
#endif
#ifndef NC
#define NC 1024
#endif

#define VECTORS (MR / LANES)
_Static_assert(MR % LANES == 0, "MR has whole vectors");
typedef double vector __attribute__((vector_size(8 * LANES), aligned(8)));

struct sizes {
    long kc, mc, nc;
};

static long least(long a, long b) { return a < b ? a : b; }

// MR by NR of C, from slivers of A and B.
static void block(long k, const double *a, const double *b, double *c, long n) {
    vector sum[NR][VECTORS] = {0};
    for (long p = 0; p < k; p++, a += MR, b += NR) {
#pragma GCC unroll 64
        for (int j = 0; j < NR; j++) {
#pragma GCC unroll 64
            for (int i = 0; i < VECTORS; i++)
                sum[j][i] += *(const vector *)(a + LANES * i) * b[j];
        }
    }
#pragma GCC unroll 64
    for (int j = 0; j < NR; j++) {
#pragma GCC unroll 64
        for (int i = 0; i < VECTORS; i++)
            *(vector *)(c + j * n + LANES * i) += sum[j][i];
    }
}

// The same at an edge: `rows` by `columns`.
static void edge(long k, const double *a, const double *b, double *c, long n, long rows, long columns) {
    double sum[NR * MR] = {0};
    block(k, a, b, sum, MR);
    for (long j = 0; j < columns; j++)
        for (long i = 0; i < rows; i++)
            c[j * n + i] += sum[j * MR + i];
}

static void pack_a(const double *a, long n, long rows, long k, double *to) {
    for (long i = 0; i < rows; i += MR)
        for (long p = 0; p < k; p++, to += MR)
            for (long r = 0; r < MR; r++)
                to[r] = i + r < rows ? a[p * n + i + r] : 0;
}

static void pack_b(const double *b, long n, long columns, long k, double *to) {
    for (long j = 0; j < columns; j += NR)
        for (long p = 0; p < k; p++, to += NR)
            for (long r = 0; r < NR; r++)
                to[r] = j + r < columns ? b[(j + r) * n + p] : 0;
}

static void dgemm(long n, const double *a, const double *b, double *c, struct sizes s, double *room_a, double *room_b) {
    for (long j = 0; j < n; j += s.nc) {
        long columns = least(s.nc, n - j);
        for (long p = 0; p < n; p += s.kc) {
            long k = least(s.kc, n - p);
            pack_b(b + j * n + p, n, columns, k, room_b);
            for (long i = 0; i < n; i += s.mc) {
                long rows = least(s.mc, n - i);
                pack_a(a + p * n + i, n, rows, k, room_a);
                for (long y = 0; y < columns; y += NR)
                    for (long x = 0; x < rows; x += MR) {
                        double *to = c + (j + y) * n + i + x;
                        if (rows - x >= MR && columns - y >= NR)
                            block(k, room_a + x * k, room_b + y * k, to, n);
                        else
                            edge(k, room_a + x * k, room_b + y * k, to, n, least(MR, rows - x), least(NR, columns - y));
                    }
            }
        }
    }
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
    memset(room, 0, 8 * elements);
    return room;
}

// An element of C, computed plainly.
static int right(long n, const double *a, const double *b, const double *c, long i, long j) {
    double sum = 0;
    for (long p = 0; p < n; p++)
        sum += a[p * n + i] * b[j * n + p];
    double off = sum - c[j * n + i];
    return off * off < 1e-18 * sum * sum;
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1024;
    if (n < 1 || n > 20000) {
        fprintf(stderr, "usage: dgemm [SIZE], of 1 to 20000\n");
        return 2;
    }
    double *a = allocate(n * n), *b = allocate(n * n), *c = allocate(n * n);
    double *room_a = allocate((n + MR) * n), *room_b = allocate((n + NR) * n);
    for (long i = 0; i < n * n; i++) {
        a[i] = 1 + i % 7 / 8.0;
        b[i] = 1 + i % 5 / 8.0;
    }
    struct sizes s = {KC, MC, NC};
    int asked = argc > 1;
    while (!asked || scanf("%ld %ld %ld", &s.kc, &s.mc, &s.nc) == 3) {
        if (s.kc < 1 || s.mc < 1 || s.nc < 1)
            return 2;
        memset(c, 0, 8 * n * n);
        double start = now();
        dgemm(n, a, b, c, s, room_a, room_b);
        double seconds = now() - start;
        if (!right(n, a, b, c, n - 1, n / 2) || !right(n, a, b, c, n / 3, n - 1)) {
            fprintf(stderr, "wrong result with KC %ld, MC %ld, NC %ld\n", s.kc, s.mc, s.nc);
            return 1;
        }
        if (!asked) {
            printf("%.1f Gflop/s\n", 2e-9 * n * n * n / seconds);
            return 0;
        }
        printf("%.9f\n", seconds);
        fflush(stdout);
    }
    return 0;
}
