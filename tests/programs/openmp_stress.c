// Many threads touch the same pages at the same time, in another order each, and take and give back memory meanwhile; threads that
// are not OpenMP's start and end beside them between regions.
//@ levels: -fopenmp -O2 -g
//@ teams: 2 8
//@ capture: storm@*
//@ capture: apart@*
//@ invocation: 1,3
//@ codelets: 4
//@ threads: 1 3 8
//@ loop-refused: * ~ within a parallel region
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGES 3000
#define WORDS 512
static unsigned long field[PAGES][WORDS];
static unsigned long *blocks[64];

static unsigned long next(unsigned long *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// Sums of all threads' additions: the same in any order, however the work is divided.
static void storm(int round) {
#pragma omp parallel for schedule(dynamic, 1)
    for (int part = 0; part < 64; part++) {
        unsigned long state = 88172645463325252ul + (unsigned)part * 977ul + (unsigned)round;
        for (int i = 0; i < 4000; i++) {
            unsigned long r = next(&state);
            unsigned long *word = &field[r % PAGES][r / PAGES % WORDS];
            __atomic_fetch_add(word, r >> 40, __ATOMIC_RELAXED);
            if (i % 500 == 0) {
                char *block = malloc(r % 9000 + 1);
                memset(block, part, r % 9000 + 1);
                __atomic_fetch_add(word, (unsigned long)block[r % 9000], __ATOMIC_RELAXED);
                free(block);
            }
        }
    }
}

// Each thread writes what the others read next.
static void apart(int round) {
#pragma omp parallel
    {
        for (int step = 0; step < 3; step++) {
#pragma omp for schedule(static)
            for (int page = 0; page < PAGES; page++)
                field[page][round] += field[(page * 7 + step) % PAGES][round + 8];
#pragma omp for schedule(static)
            for (int page = 0; page < PAGES; page++)
                field[page][round + 8] ^= field[page][round] + (unsigned)step;
        }
    }
}

static void *beside(void *argument) {
    unsigned long *block = malloc(4096);
    memset(block, 1, 4096);
    blocks[(long)argument] = block;
    return NULL;
}

int main(void) {
    for (int page = 0; page < PAGES; page++)
        field[page][page % WORDS] = (unsigned)page;
    for (int round = 0; round < 4; round++) {
        storm(round);
        pthread_t threads[4];
        for (long i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, beside, (void *)(i + 4 * round));
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        apart(round);
    }
    unsigned long sum = 0;
    for (int page = 0; page < PAGES; page++)
        for (int word = 0; word < WORDS; word++)
            sum = sum * 31 + field[page][word];
    for (int i = 0; i < 16; i++) {
        sum += blocks[i][3];
        free(blocks[i]);
    }
    printf("%lu\n", sum);
}
