/* Touches MIB megabytes page by page in the given pattern: `faults bare|plain MIB PATTERN`.
 * bare: under a SIGSEGV handler that does nothing but open the page; prints nanoseconds a page.
 * plain: just so, once, in `sweep`, which is what a capture run captures. Patterns: read, write, both; order, random. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static char *memory;
static long pages;
static unsigned *order;

static void open_page(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    mprotect((void *)((unsigned long)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

__attribute__((noinline)) static long sweep(int how) {
    long sum = 0;
    for (long i = 0; i < pages; i++) {
        volatile long *at = (volatile long *)(memory + 4096l * order[i]);
        if (how == 'r') sum += *at;
        else if (how == 'w') *at = i;
        else { sum += *at; *at = i; }
    }
    return sum;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    size_t size = (size_t)atol(argv[2]) << 20;
    pages = size / 4096;
    order = malloc(pages * sizeof *order);
    memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    memset(memory, 1, size);
    unsigned long state = 88172645463325252ul;
    for (long i = 0; i < pages; i++) order[i] = i;
    if (argv[4][0] == 'r')
        for (long i = pages - 1; i > 0; i--) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            long j = state % (i + 1);
            unsigned swap = order[i];
            order[i] = order[j], order[j] = swap;
        }
    if (strcmp(argv[1], "bare") == 0) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = open_page;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, 0);
        mprotect(memory, size, PROT_NONE);
        double start = now();
        sweep(argv[3][0]);
        printf("%.1f\n", (now() - start) / pages);
    } else {
        sweep(argv[3][0]);
    }
    return 0;
}
