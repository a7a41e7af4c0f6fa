// A region entered in a signal handler that interrupted malloc, which holds its lock: another thread exists.
//@ levels: -O2 -g
//@ capture: work@*
//@ codelets: 1
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char *closed;
static size_t length;
static volatile long sum;
static volatile int faults;

static __attribute__((noinline)) long work(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        sum += i;
        sum ^= sum << 3;
    }
    return sum;
}

static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    if ((char *)info->si_addr < closed || (char *)info->si_addr >= closed + length)
        _exit(3);
    faults++;
    mprotect(closed, length, PROT_READ | PROT_WRITE);
    sum = work(1000);
}

static void *wait(void *unused) {
    pause();
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait, NULL);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    // What lies behind the last block is the top of the heap, which malloc writes to when it cuts a block from it.
    char *block = malloc(20000);
    closed = (char *)(((size_t)block + 20000 + 4095) & ~(size_t)4095);
    length = ((size_t)sbrk(0) & ~(size_t)4095) - (size_t)closed;
    mprotect(closed, length, PROT_NONE);
    char *cut = malloc(30000);
    printf("%ld %d %d\n", sum, faults, cut > block);
}
