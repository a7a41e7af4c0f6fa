// What a thread is known by, kept in memory, compared and computed with: its control block, its number, errno, thread-local
// variables; locks that are held around the region.
//@ levels: -O0 -g ; -O2
//@ flags: -O0 ; -O3
//@ codelets: 3
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct who {
    pthread_t thread;
    int *error;
    long *local;
    uintptr_t hash;
    char packed[12];
};

static __thread long local[8];
static struct who kept;
static struct who *copy;
static pthread_mutex_t held = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t inside = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t left = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static uintptr_t hash(uintptr_t value) { return (value >> 4) * 0x9e3779b97f4a7c15u; }

__attribute__((noinline)) static void keep(int n) {
    for (int i = 0; i < n; i++) {
        kept.thread = pthread_self();
        kept.error = &errno;
        kept.local = &local[i & 7];
        kept.hash += hash((uintptr_t)pthread_self()) ^ hash((uintptr_t)local);
        for (int b = 0; b < 8; b++)
            kept.packed[b + 3] = (char)((uintptr_t)pthread_self() >> 8 * b);
    }
}

__attribute__((noinline)) static long same(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        sum += pthread_equal(copy->thread, pthread_self()) + (copy->error == &errno) + (copy->local == &local[7]);
        sum += copy->hash % 64 == kept.hash % 64;
        *copy->error = i;
        sum += errno;
        *copy->local += i;
        sum += local[7];
    }
    return sum;
}

__attribute__((noinline)) static long locks(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        sum += pthread_mutex_trylock(&held) == 0;
        sum += pthread_mutex_unlock(&held) == 0;
        sum += pthread_mutex_lock(&inside);
        sum += pthread_mutex_lock(&inside) == EDEADLK;
        sum += pthread_mutex_unlock(&inside);
        sum += pthread_mutex_lock(&left);
    }
    return sum;
}

int main(void) {
    copy = malloc(sizeof *copy);
    long sum = 0;
    pthread_mutex_lock(&held);
    for (int k = 0; k < 3; k++) {
        keep(32);
        *copy = kept;
        sum += same(50 + k);
        sum += locks(20);
    }
    printf("%ld %d\n", sum, pthread_equal(kept.thread, pthread_self()));
    return 0;
}
