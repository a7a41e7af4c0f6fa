/* Regions that print, read a file, start a process, wait, crash, or are left: `outside WHAT`. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long sum;
static jmp_buf back;
static volatile sig_atomic_t ticks;
static int *volatile nowhere;

__attribute__((noinline)) static void print(int n) {
    for (int i = 0; i < n; i++) {
        printf("line %d\n", i);
        if (i == n - 1) fflush(stdout);
    }
}

__attribute__((noinline)) static void read_self(int n) {
    for (int i = 0; i < n; i++) {
        FILE *file = fopen("/proc/self/cmdline", "r");
        sum += fgetc(file);
        fclose(file);
    }
}

__attribute__((noinline)) static void start_child(int n) {
    for (int i = 0; i < n; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) _exit(i + 1);
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
    }
}

__attribute__((noinline)) static void crash(int n) {
    for (int i = 0; i < n; i++) {
        sum += i;
        if (i == 7) *nowhere = 1;
    }
}

__attribute__((noinline)) static void jump(int i) {
    if (i == 9) longjmp(back, 1);
}

__attribute__((noinline)) static void leave(int n) {
    for (int i = 0; i < n; i++) {
        sum += i;
        jump(i);
    }
}

__attribute__((noinline)) static void end(int n) {
    for (int i = 0; i < n; i++) {
        sum += i;
        if (sum > 100) exit(9);
        printf("%ld ", sum);
    }
}

__attribute__((noinline)) static void wait_for_ticks(int n) {
    while (ticks < n) sum |= 1;
}

__attribute__((noinline)) static void add(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

static void tick(int signal) { ticks += signal == SIGALRM; }

static void caught(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    printf("caught %d\n", info->si_addr == 0);
    longjmp(back, 1);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "print")) print(3), print(2);
    if (!strcmp(what, "read")) read_self(3), add(10);
    if (!strcmp(what, "child")) start_child(3), add(10);
    if (!strcmp(what, "crash")) crash(10);
    if (!strcmp(what, "catch")) {
        struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_NODEFER};
        sigaction(SIGSEGV, &action, NULL);
        if (!setjmp(back)) crash(10);
        add(10);
    }
    if (!strcmp(what, "jump") && !setjmp(back)) leave(100);
    if (!strcmp(what, "jump")) add(10);
    if (!strcmp(what, "end")) end(100);
    if (!strcmp(what, "signal")) {
        struct itimerval every = {{0, 2000}, {0, 2000}};
        signal(SIGALRM, tick);
        setitimer(ITIMER_REAL, &every, NULL);
        wait_for_ticks(3);
        add(10);
    }
    printf("%ld\n", sum);
    return 4;
}
