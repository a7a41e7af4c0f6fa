// The bare round trip: mprotect everything, then a SIGSEGV handler that opens one page a fault; with `copy`, it copies the page first.
#include "order.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static char *kept;
static long count;
static int copies, first = PROT_READ;

static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    char *page = (char *)((unsigned long)info->si_addr & ~4095ul);
    if (copies && first == PROT_READ)
        mprotect(page, 4096, PROT_READ), memcpy(kept + 4096 * count++, page, 4096);
    else if (copies)
        mprotect(page, 4096, first), memcpy(kept + 4096 * count++, page, 4096);
    else
        mprotect(page, 4096, first);
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 20000;
    const long *order = make_order(n, argc > 2 && argv[2][0] == 'r');
    copies = argc > 3;
    char *data = mmap(NULL, (size_t)n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    kept = mmap(NULL, (size_t)n * 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(kept, 1, (size_t)n * 8192);
    for (long i = 0; i < n * 4096; i++)
        data[i] = (char)(i >> 6);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    mprotect(data, (size_t)n * 4096, PROT_NONE);
    double t0 = now();
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += data[order[i] * 4096];
    double t1 = now();
    mprotect(data, (size_t)n * 4096, PROT_NONE);
    first = PROT_READ | PROT_WRITE;
    double t2 = now();
    for (long i = 0; i < n; i++)
        data[order[i] * 4096] = (char)i;
    double t3 = now();
    printf("read %.1f write %.1f (%ld)\n", (t1 - t0) / (double)n, (t3 - t2) / (double)n, sum);
}
