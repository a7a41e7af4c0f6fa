/* A process started by a system call of its own, of which libc knows nothing, runs the same loops. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long sum;

__attribute__((noinline)) static void work(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

int main(void) {
    for (volatile int i = 0; i < 3; i++) work(10);
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        for (volatile int i = 0; i < 1000; i++) work(10);
        syscall(SYS_exit_group, 0);
    }
    waitpid((pid_t)child, NULL, 0);
    work(10);
    printf("%ld\n", sum);
    return 0;
}
