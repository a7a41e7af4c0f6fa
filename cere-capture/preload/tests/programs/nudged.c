/* Calls that the preload library stands before, interrupted all the time: `nudged WHAT`.
   "nudges": another process sends the signal that has captures given up; "signals": a handler with a loop. */
#define _GNU_SOURCE
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOCKS 64
#define ROUNDS 60
#define RINGS 150

static omp_lock_t locks[LOCKS];
static volatile long sum, rung;

__attribute__((noinline)) static void use_locks(int n) {
    for (int i = 0; i < n; i++) {
        omp_init_lock(&locks[i % LOCKS]);
        omp_set_lock(&locks[i % LOCKS]);
        sum += i;
        omp_unset_lock(&locks[i % LOCKS]);
        omp_destroy_lock(&locks[i % LOCKS]);
    }
}

__attribute__((noinline)) static void use_heap(int n) {
    for (int i = 0; i < n; i++) {
        char *block = malloc(16 + i % 64 * 32);
        block[0] = 1;
        sum += block[0];
        free(block);
    }
}

__attribute__((noinline)) static void handle(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

/* The next one comes when this one is done. */
static void ring(int signal) {
    struct itimerval next = {{0, 0}, {0, 50 + rung * 37 % 100}};
    (void)signal;
    handle(10);
    if (++rung < RINGS) setitimer(ITIMER_REAL, &next, NULL);
}

static void send(pid_t to) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; i++) {
        syscall(SYS_tgkill, to, to, SIGURG);
        usleep(1000 + i * 371 % 7000);
    }
}

/* The same calls outside of any region: recursion is no loop. */
static void call(int n) {
    if (n == 0) return;
    omp_init_lock(&locks[n % LOCKS]);
    omp_destroy_lock(&locks[n % LOCKS]);
    call(n - 1);
    sum += 1;
}

static void again(void) {
    call(1000);
    if (rung < RINGS) again();
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "nudges")) {
        pid_t self = getpid(), child = fork();
        if (child == 0) send(self);
        for (int i = 0; i < ROUNDS; i++) use_locks(100000), use_heap(200000);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    } else {
        struct sigaction action = {.sa_handler = ring, .sa_flags = SA_RESTART};
        sigaction(SIGALRM, &action, NULL);
        raise(SIGALRM);
        again();
        use_locks(10);
    }
    puts("done");
    return 0;
}
