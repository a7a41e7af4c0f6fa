// Touches pages inside a region and prints the nanoseconds a page that this took: the cost of a capture, seen from inside.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) long read_pages(const char *data, long n, long stride) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += data[i * stride % n * 4096];
    return sum;
}
static __attribute__((noinline)) long write_pages(char *data, long n, long stride) {
    for (long i = 0; i < n; i++)
        data[i * stride % n * 4096] = (char)i;
    return data[0];
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 20000, stride = argc > 2 ? atol(argv[2]) : 1;
    char *data = aligned_alloc(4096, (size_t)n * 4096);
    for (long i = 0; i < n * 4096; i++)
        data[i] = (char)(i >> 6);
    double t0 = now();
    long a = read_pages(data, n, stride);
    double t1 = now();
    long b = write_pages(data, n, stride);
    double t2 = now();
    printf("read %.1f write %.1f (%ld)\n", (t1 - t0) / (double)n, (t2 - t1) / (double)n, a + b);
}
