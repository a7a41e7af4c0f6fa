// Threads beside captured regions that hold locks of libc, are in a handler, start and end. And one that blocks all signals,
// beside which nothing is captured.
//@ levels: -O2 -g
//@ capture: work@*
//@ capture: blocked@*
//@ refused: blocked@* ~ blocks all signals
//@ codelets: 1
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic int over, in_handler, ready;
static double values[5000];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *allocates(void *unused) {
    for (long n = 1; !over; n++) free(malloc(n * 7919 % 200000));
    return unused;
}

static void *prints(void *unused) {
    FILE *nowhere = fopen("/dev/null", "w");
    for (long n = 0; !over; n++) fprintf(nowhere, "%ld %g\n", n, n * 0.5);
    fclose(nowhere);
    return unused;
}

static void *keeps(void *unused) {
    pthread_mutex_lock(&held);
    ready++;
    while (!over) usleep(200);
    pthread_mutex_unlock(&held);
    return unused;
}

static void handle(int signal) {
    (void)signal;
    in_handler = 1;
    while (!over) {
    }
}

static void *handles(void *unused) {
    raise(SIGUSR1);
    return unused;
}

static void *ends(void *argument) { return argument; }

static void *starts(void *unused) {
    for (; !over; usleep(500)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, ends, NULL) == 0) pthread_join(thread, NULL);
    }
    return unused;
}

__attribute__((noinline)) static double work(int k) {
    double sum = 0;
    for (int i = 1; i < 5000; i++) {
        double *one = malloc(64);
        *(volatile double *)one = values[i - 1] * 0.25 + k;
        sum += values[i] += *one;
        free(one);
    }
    return sum;
}

static void *blocks(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    ready++;
    while (over != 2) usleep(1000);
    return unused;
}

__attribute__((noinline)) static double blocked(int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += values[i] *= 0.5;
    return sum;
}

int main(void) {
    void *(*all[])(void *) = {allocates, prints, keeps, handles, starts};
    enum { N = sizeof all / sizeof *all };
    pthread_t threads[N], blocking;
    signal(SIGUSR1, handle);
    for (int i = 0; i < N; i++) pthread_create(&threads[i], NULL, all[i], NULL);
    while (!in_handler || !ready) usleep(1000);
    double sum = 0;
    sum += work(1);
    over = 1;
    for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
    pthread_create(&blocking, NULL, blocks, NULL);
    while (ready < 2) usleep(1000);
    sum += blocked(5000);
    over = 2;
    pthread_join(blocking, NULL);
    printf("%g\n", sum);
    return 0;
}
