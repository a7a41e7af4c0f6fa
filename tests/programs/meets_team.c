// A thread of a team calls what needs another thread's state: the region is refused with the function's name.
//@ levels: -fopenmp -O2
//@ teams: 2
//@ capture: meets@*
//@ loop-refused: * ~ within a parallel region
//@ refused: meets@* ~ calls pthread_tryjoin_np: it waits for another thread
//@ codelets: 0
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_t threads[2];
static double values[1000];

static void *ends(void *argument) { return argument; }

__attribute__((noinline)) static int meets(void) {
    int joined = 0;
#pragma omp parallel num_threads(2) reduction(+ : joined)
    {
        for (int i = 0; i < 1000; i++) values[i] += omp_get_thread_num() == 0;
        if (omp_get_thread_num() == 1) joined += pthread_tryjoin_np(threads[0], NULL) == 0;
    }
    return joined;
}

int main(void) {
    pthread_create(&threads[0], NULL, ends, NULL);
    usleep(50000);
    int joined = meets();
    threads[0] = threads[1];
    printf("%d %g\n", joined, values[7]);
    return 0;
}
