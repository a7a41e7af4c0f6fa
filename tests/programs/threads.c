// Another thread works while regions of the main thread are captured.
//@ levels: -O2 -g ; -O0
//@ capture: work@*
//@ codelets: 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// On a page of their own: what another thread writes on a page of the region shows as a difference, and should.
static _Alignas(4096) struct {
    atomic_int stop;
    atomic_long turns;
    char rest[4080];
} shared;
#define stop shared.stop
#define turns shared.turns
static long data[4096];

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

static __attribute__((noinline)) long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        data[i & 4095] += i;
        sum += data[(i * 7) & 4095];
    }
    return sum;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, spin, NULL);
    while (atomic_load(&turns) < 3)
        ;
    long sum = work(100000) + work(1000);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    printf("%ld\n", sum);
}
