// A program with its own SIGSEGV handler, that faults inside a region and goes on.
//@ levels: -O2 -g ; -O0
//@ capture: work@*
//@ codelets: 1
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char *page;
static volatile int faults;

static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    faults++;
    if ((char *)info->si_addr < page || (char *)info->si_addr >= page + 4096)
        _exit(3);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static __attribute__((noinline)) long work(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        sum += i;
        sum ^= sum << 3;
    }
    return sum;
}

int main(void) {
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    long sum = work(1000);
    mprotect(page, 4096, PROT_NONE);
    page[5] = 1;
    printf("%ld %d\n", sum + page[5], faults);
}
