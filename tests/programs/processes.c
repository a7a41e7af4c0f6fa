// Shared memory: of one process alone it is captured, with another process that has it mapped it is not. A region that asks the
// other process, as ranks do, would wait for ever in a replay.
//@ levels: -O2 -g ; -O0
//@ capture: alone@*
//@ capture: asks@*
//@ capture: after@*
//@ capture: reads@*
//@ refused: asks@* ~ memory that other processes change
//@ refused: reads@* ~ memory that other processes change
//@ codelets: 2
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 2000, TURNS = 5 };
static long *own;
static volatile long *box;
static const long *view;

__attribute__((noinline)) static long alone(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += own[i % N] += i;
    return sum;
}

// The word 0 is the parent's turn, 64 the child's.
__attribute__((noinline)) static long asks(long first) {
    long sum = 0;
    for (long turn = first; turn < first + TURNS; turn++) {
        box[0] = turn;
        while (box[64] < turn) {
        }
        sum += box[65];
    }
    return sum;
}

__attribute__((noinline)) static long reads(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += view[i % 512];
    return sum;
}

__attribute__((noinline)) static long after(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += box[i % 512] += i;
    return sum;
}

int main(void) {
    int both = PROT_READ | PROT_WRITE, memory = memfd_create("view", 0);
    own = mmap(NULL, N * sizeof *own, both, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    box = mmap(NULL, 4096, both, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED || box == MAP_FAILED || memory < 0 || ftruncate(memory, 4096)) return 1;
    long sum = alone(3 * N);
    pid_t child = fork();
    if (child == 0) {
        munmap(own, N * sizeof *own);
        volatile long *theirs = mmap(NULL, 4096, both, MAP_SHARED, memory, 0);
        for (long turn = 1; turn <= TURNS; turn++) {
            while (box[0] < turn) usleep(100);
            theirs[0] = box[65] = turn * turn;
            box[64] = turn;
        }
        for (;;) pause();
    }
    view = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memory, 0);
    if (view == MAP_FAILED) return 1;
    sum += asks(1) + reads(1000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    sum += after(3 * N);
    printf("%ld\n", sum);
    return 0;
}
