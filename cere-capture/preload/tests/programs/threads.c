/* Another thread that never rests, beside regions that do and do not need it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_int stop;
static atomic_long turns;
long data[4096];

static void *spin(void *unused) {
    (void)unused;
    char *block = malloc(1 << 20);
    while (!atomic_load(&stop)) {
        memset(block, (int)turns, 1 << 20);
        atomic_fetch_add(&turns, 1);
        char *other = malloc(10000);
        memset(other, 1, 10000);
        free(other);
    }
    free(block);
    return NULL;
}

__attribute__((noinline)) static long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        data[i & 4095] += i;
        sum += data[(i * 7) & 4095];
        if (i % 1000 == 0) free(malloc(100));
    }
    return sum;
}

__attribute__((noinline)) static void join(pthread_t *threads, int n) {
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, spin, NULL);
    while (atomic_load(&turns) < 3) {}
    long sum = work(100000) + work(1000);
    atomic_store(&stop, 1);
    join(threads, 2);
    printf("%ld\n", sum);
    return 0;
}
