// What each thread of a team keeps for itself from one parallel region to the next: a random state, and a history of it.
//@ unflipped: what it computes depends on the number of threads, so that one thread ends in another state
//@ levels: -fopenmp -O0 ; -fopenmp -O3 -g
//@ teams: 1 2 4
//@ capture: draw@*
//@ invocation: 1,3
//@ codelets: 2
//@ loop-refused: * ~ within a parallel region
#include <omp.h>
#include <stdio.h>

#define MOST 64
static unsigned long state, history[20];
#pragma omp threadprivate(state, history)
static unsigned long drawn[MOST], sums[MOST];

static void seed(unsigned long from) {
#pragma omp parallel
    {
        state = from + 7919 * (unsigned long)omp_get_thread_num();
        for (int i = 0; i < 20; i++)
            history[i] = state ^ (unsigned long)i;
    }
}

static void draw(int count) {
#pragma omp parallel
    {
        int me = omp_get_thread_num() % MOST;
        for (int i = 0; i < count; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            history[i % 20] += state >> 33;
            drawn[me] ^= state;
        }
        for (int i = 0; i < 20; i++)
            sums[me] += history[i];
    }
}

int main(void) {
    seed(12345);
    for (int round = 0; round < 4; round++) {
        draw(1000 + round);
        if (round == 1)
            seed(99);
    }
    unsigned long all = 0;
    for (int i = 0; i < MOST; i++)
        all = all * 31 + drawn[i] + sums[i];
    printf("%lx\n", all);
    return 0;
}
