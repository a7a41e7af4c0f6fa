// Parallel regions of OpenMP: every construct, results that do not depend on the number of threads.
//@ levels: -fopenmp -O2 -g ; -fopenmp -O0 ; -fopenmp -O3
//@ teams: 1 2
//@ capture: *@openmp.c*
//@ loop-refused: * ~ within a parallel region
//@ codelets: 12
//@ threads: 2 3 8
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define N 20000
static long a[N], b[N], total, added, taken, twice, order[64], place;
static long worst;
static omp_lock_t lock;
static omp_nest_lock_t nested;
static long kept;
#pragma omp threadprivate(kept)

static void fill(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        a[i] = (long)i * 7 % 1001;
}

static long reduce(void) {
    long sum = 0, most = 0;
#pragma omp parallel for reduction(+ : sum) reduction(max : most) schedule(static, 64)
    for (int i = 0; i < N; i++) {
        sum += a[i];
        most = a[i] > most ? a[i] : most;
    }
    return sum * 3 + most;
}

static void schedules(int kind) {
    if (kind == 0) {
#pragma omp parallel for schedule(dynamic, 37)
        for (int i = 0; i < N; i++)
            b[i] += a[i] + 1;
    } else if (kind == 1) {
#pragma omp parallel for schedule(guided)
        for (int i = 0; i < N; i++)
            b[i] += 2 * a[i];
    } else {
#pragma omp parallel for schedule(runtime)
        for (int i = 0; i < N; i++)
            b[i] ^= a[i];
    }
}

static void locked(void) {
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < 500; i++) {
#pragma omp critical
            total += a[i];
#pragma omp critical(other)
            worst = b[i] > worst ? b[i] : worst;
#pragma omp atomic
            added += 3;
            omp_set_lock(&lock);
            taken += 1;
            omp_unset_lock(&lock);
            omp_set_nest_lock(&nested);
            omp_set_nest_lock(&nested);
            twice += 2;
            omp_unset_nest_lock(&nested);
            omp_unset_nest_lock(&nested);
        }
    }
}

static void ordered(void) {
    place = 0;
#pragma omp parallel for ordered schedule(dynamic, 1)
    for (int i = 0; i < 64; i++) {
        long value = a[i] * a[i];
#pragma omp ordered
        order[place++] = value + i;
    }
}

static long fibonacci(int n) {
    long x, y;
    if (n < 2)
        return n;
#pragma omp task shared(x) if (n > 8)
    x = fibonacci(n - 1);
#pragma omp task shared(y) if (n > 8)
    y = fibonacci(n - 2);
#pragma omp taskwait
    return x + y;
}

static long tasks(void) {
    long result = 0;
#pragma omp parallel
#pragma omp single
    {
        result = fibonacci(14);
#pragma omp taskloop grainsize(100)
        for (int i = 0; i < N; i++)
            b[i] += i;
    }
    return result;
}

static long copies(void) {
    long sum = 0;
    kept = 5;
#pragma omp parallel copyin(kept) reduction(+ : sum)
    {
        long mine;
#pragma omp single copyprivate(mine)
        mine = a[17] + 1;
        kept += mine;
        // The same in all threads, so that their number does not show.
        sum += (kept - mine - 5) + (mine - a[17] - 1);
#pragma omp barrier
#pragma omp sections
        {
#pragma omp section
            a[1] += 1;
#pragma omp section
            a[2] += 2;
        }
#pragma omp master
        a[3] += kept;
    }
    return sum;
}

static void fixed(int n) {
#pragma omp parallel for num_threads(n) if (n > 0)
    for (int i = 0; i < N; i++)
        a[i] += n;
}

static void simd(void) {
#pragma omp parallel for simd collapse(2)
    for (int i = 0; i < 100; i++)
        for (int j = 0; j < 200; j++)
            b[i * 200 + j] += i ^ j;
}

static long blocks(void) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 200; i++) {
        long *block = malloc(sizeof(long) * (size_t)(i + 1));
        for (int j = 0; j <= i; j++)
            block[j] = j;
        sum += block[i];
        free(block);
    }
    return sum;
}

int main(void) {
    long check = 0;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nested);
    for (int step = 0; step < 3; step++) {
        fill();
        check += reduce();
        schedules(step);
        locked();
        ordered();
        check += tasks();
        check += copies();
        fixed(step + 1);
        simd();
        check += blocks();
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nested);
    for (int i = 0; i < N; i++)
        check = check * 31 + a[i] + b[i];
    for (int i = 0; i < 64; i++)
        check += order[i];
    printf("%ld %ld %ld %ld %ld %ld\n", check, total, added, taken, twice, worst);
}
