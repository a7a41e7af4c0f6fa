#include <stdlib.h>

// The numbers below n, in order or shuffled.
static long *make_order(long n, int shuffled) {
    long *order = malloc((size_t)n * sizeof *order);
    unsigned long seed = 1;
    for (long i = 0; i < n; i++)
        order[i] = i;
    for (long i = n - 1; shuffled && i > 0; i--) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        long j = (long)((seed >> 33) % (unsigned long)(i + 1)), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    return order;
}
