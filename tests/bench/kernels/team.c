// Touches pages inside parallel regions, each thread its part, and prints the nanoseconds a page that this took, from the first to the
// last touch of all threads.
#include "order.h"
#include "ticks.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 64
static unsigned long first[MOST], last[MOST];

static __attribute__((noinline)) long read_pages(const char *data, const long *order, long n) {
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        int me = omp_get_thread_num(), all = omp_get_num_threads();
        first[me] = __rdtsc();
        for (long i = n * me / all; i < n * (me + 1) / all; i++)
            sum += data[order[i] * 4096];
        last[me] = __rdtsc();
    }
    return sum;
}
static __attribute__((noinline)) long write_pages(char *data, const long *order, long n) {
#pragma omp parallel
    {
        int me = omp_get_thread_num(), all = omp_get_num_threads();
        first[me] = __rdtsc();
        for (long i = n * me / all; i < n * (me + 1) / all; i++)
            data[order[i] * 4096] = (char)i;
        last[me] = __rdtsc();
    }
    return data[0];
}

static double ticks(int threads) {
    unsigned long begin = first[0], end = last[0];
    for (int i = 1; i < threads; i++) {
        begin = first[i] < begin ? first[i] : begin;
        end = last[i] > end ? last[i] : end;
    }
    return (double)(end - begin);
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 20000;
    int threads = omp_get_max_threads();
    if (threads > MOST)
        return 1;
    const long *order = make_order(n, argc > 2 && argv[2][0] == 'r');
    char *data = make_pages(n);
    double nanoseconds = tick() / (double)n;
    long a = read_pages(data, order, n);
    double read = ticks(threads) * nanoseconds;
    long b = write_pages(data, order, n);
    double write = ticks(threads) * nanoseconds;
    printf("read %.1f write %.1f (%ld)\n", read, write, a + b);
}
