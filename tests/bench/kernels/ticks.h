#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Nanoseconds of a tick of the time stamp counter.
static double tick(void) {
    double t = now();
    unsigned long c = __rdtsc();
    while (now() - t < 2e7)
        ;
    return (now() - t) / (double)(__rdtsc() - c);
}

// Pages with something in them.
static char *make_pages(long n) {
    char *data = aligned_alloc(4096, (size_t)n * 4096);
    for (long i = 0; i < n * 4096; i++)
        data[i] = (char)(i >> 6);
    return data;
}
