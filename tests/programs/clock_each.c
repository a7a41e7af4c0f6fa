// The clock of OpenMP, read by every thread of a team: each gets the answers that it got in vivo.
//@ levels: -fopenmp -O2
//@ teams: 1 2
//@ capture: each@*
//@ loop-refused: * ~ within a parallel region
//@ codelets: 1
//@ unflipped: flips are looked for with one thread, and a team's threads have answers of their own
#include <omp.h>
#include <stdio.h>

static double all[64];

__attribute__((noinline)) static double each(void) {
    double began[64] = {0};
#pragma omp parallel
    for (int i = 0; i < 20; i++) began[omp_get_thread_num() % 64] += omp_get_wtime();
    double sum = 0;
    for (int i = 0; i < 64; i++) all[i] = began[i], sum += began[i];
    return sum > 0;
}

int main(void) {
    printf("%g\n", each());
}
