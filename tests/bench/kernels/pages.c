// Touches pages inside a region and prints the nanoseconds a page that this took, from the first to the last touch: the cost of
// a fault under capture, what comes before and after the region left out.
#include "order.h"
#include "ticks.h"
#include <stdio.h>
#include <stdlib.h>

static unsigned long first, last;

static __attribute__((noinline)) long read_pages(const char *data, const long *order, long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        if (i == 0)
            first = __rdtsc();
        sum += data[order[i] * 4096];
        if (i == n - 1)
            last = __rdtsc();
    }
    return sum;
}
static __attribute__((noinline)) long write_pages(char *data, const long *order, long n) {
    for (long i = 0; i < n; i++) {
        if (i == 0)
            first = __rdtsc();
        data[order[i] * 4096] = (char)i;
        if (i == n - 1)
            last = __rdtsc();
    }
    return data[0];
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 20000;
    const long *order = make_order(n, argc > 2 && argv[2][0] == 'r');
    char *data = make_pages(n);
    double nanoseconds = tick() / (double)n;
    long a = read_pages(data, order, n);
    double read = (double)(last - first) * nanoseconds;
    long b = write_pages(data, order, n);
    double write = (double)(last - first) * nanoseconds;
    printf("read %.1f write %.1f (%ld)\n", read, write, a + b);
}
