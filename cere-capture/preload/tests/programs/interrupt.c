/* A handler with a loop, for a signal that comes all the time, beside loops so short that most of the time goes to
   the probes. Says in a file how often the handler's loop ran. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static volatile long count, sink;
static volatile int jumps;
static sigjmp_buf back;

__attribute__((noinline)) static long handle(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}

__attribute__((noinline)) static long work(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}

__attribute__((noinline)) static long after(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}

static void tick(int signal) {
    sink += handle(signal);
    count++;
    if (jumps && count % 3 == 0) siglongjmp(back, 1);
}

int main(int argc, char **argv) {
    char stack[65536];
    struct itimerval every = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = tick};
    if (argc > 1 && !strcmp(argv[1], "stack")) {
        stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
        sigaltstack(&own, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    jumps = argc > 1 && !strcmp(argv[1], "jump");
    sigaction(SIGALRM, &action, NULL);
    if (jumps) {
        if (!sigsetjmp(back, 1)) setitimer(ITIMER_REAL, &every, NULL);
        while (count < 3000) sink += work(2);
    } else {
        setitimer(ITIMER_REAL, &every, NULL);
        for (int i = 0; i < 2000000; i++) sink += work(2);
    }
    jumps = 0;
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < 1000; i++) sink += after(2);
    if (argc > 2) {
        FILE *counts = fopen(argv[2], "w");
        fprintf(counts, "%ld\n", count);
        fclose(counts);
    }
    return 0;
}
