// The clock of OpenMP, read by the thread that enters the region: in a region that stops by it, around and between teams.
//@ levels: -fopenmp -O2
//@ teams: 1 2
//@ capture: *@clock_team.c*
//@ loop-refused: * ~ within a parallel region
//@ codelets: 3
#include <omp.h>
#include <stdio.h>

static double all[64];
static long rounds;

__attribute__((noinline)) static void until(double deadline) {
    while (omp_get_wtime() < deadline) {
        for (volatile int i = 0; i < 20000; i++) {
        }
        all[rounds++ % 64] = omp_get_wtime();
    }
}

__attribute__((noinline)) static double team(void) {
    double least = 1e300, most = 0;
    for (int i = 0; i < 3; i++) {
        double start = omp_get_wtime();
#pragma omp parallel for reduction(max : most)
        for (int k = 0; k < 64; k++) most = k > most ? k : most;
        double took = omp_get_wtime() - start;
        least = took < least ? took : least;
    }
    return most + (least < 0);
}

int main(void) {
    until(omp_get_wtime() + 0.3);
    printf("%g\n", team());
}
