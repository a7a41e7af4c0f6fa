#include <pthread.h>
#include <stdlib.h>

extern const double weights[8];
extern const unsigned char table[64];
extern _Thread_local char room[256];
__attribute__((weak)) extern int nowhere(int);
int first(int), scale(int), twice(int);

static double values[4000];
static void bye(void) { values[0] = 0; }

__attribute__((noinline)) void start(void) {
    atexit(bye);
    at_quick_exit(bye);
    pthread_atfork(bye, bye, bye);
}

static int twice_by_hand(int i) {
    int result;
    __asm__("lea -128(%%rsp), %%rsp\n call twice\n lea 128(%%rsp), %%rsp" : "=a"(result) : "D"(i) : "cc", "memory");
    return result;
}

__attribute__((noinline)) static unsigned __int128 divide(unsigned __int128 a, unsigned b) { return a / (b + ((unsigned __int128)1 << 70)); }

double sweep(int n) {
    double sum = 0;
    for (int i = 1; i < n; i++) {
        values[i] = values[i - 1] * 0.25 + values[i] * weights[i & 7] + table[(i + 3) & 63];
        if (nowhere)
            values[i] += nowhere(i);
        if (i % 500 == 0)
            values[i] += scale(i) + first(i) + twice(i) + twice_by_hand(i) + (double)divide((unsigned __int128)i << 90, i);
        sum += values[i];
    }
    return sum;
}

__attribute__((noinline)) static int fill(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += room[i & 255]++;
    return sum;
}

// The addresses of the other library's variables are in this unit, where `sweep` does not come by.
__attribute__((noinline)) char *call(int i) { return room + (fill(1000) & 1) + i; }
