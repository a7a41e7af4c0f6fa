// A timer's signals reach any thread of the program, while regions are captured and between captures: none of the threads that get
// one is in the way of the next capture.
//@ levels: -O2 -g
//@ capture: work@*
//@ invocation: 1,30,60
//@ codelets: 3
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static _Atomic long ticks, over;
static double values[3000];

static void tick(int signal) {
    (void)signal;
    ticks++;
}

static void *allocates(void *unused) {
    while (!over) free(malloc(1000));
    return unused;
}

static void *naps(void *unused) {
    struct timespec time = {0, 300000};
    while (!over) nanosleep(&time, NULL);
    return unused;
}

__attribute__((noinline)) static double work(int k) {
    double sum = 0;
    for (int i = 1; i < 3000; i++) {
        values[i] = values[i - 1] * 0.25 + values[i] * 0.5 + k;
        sum += values[i];
    }
    return sum;
}

int main(void) {
    pthread_t threads[4];
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}};
    double sum = 0;
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i < 2 ? allocates : naps, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int k = 0; k < 100; k++) {
        sum += work(k);
        for (volatile int i = 0; i < 100000; i++) {
        }
    }
    while (ticks == 0) {
    }
    over = 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("%g\n", sum);
    return 0;
}
