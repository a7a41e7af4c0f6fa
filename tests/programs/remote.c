// Another process reads this one's memory while a region of it is captured, as ranks of MPI do for large messages. It waits, and
// gets what is there.
//@ levels: -O2 -g
//@ capture: work@*
//@ codelets: 1
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 100000 };
static long given[N];
static double values[N];

__attribute__((noinline)) static double work(int k) {
    double sum = 0;
    for (int i = 1; i < 30 * N; i++) sum += values[i % N] += values[(i - 1) % N] * 0.25 + k;
    return sum;
}

static int reads(pid_t parent, int begun) {
    static long got[N];
    struct iovec own = {got, sizeof got}, other = {given, sizeof given};
    for (int k = 0; k < 1000; k++) {
        for (int i = 0; i < N; i++) got[i] = 0;
        ssize_t size = process_vm_readv(parent, &own, 1, &other, 1, 0);
        if (k == 0 && write(begun, "x", 1) != 1) return 3;
        if (size < 0 && errno == EPERM) return 0;
        if (size != sizeof got) return 1;
        for (int i = 0; i < N; i++)
            if (got[i] != i + 1) return 2;
    }
    return 0;
}

int main(void) {
    int begun[2], status;
    char byte;
    for (int i = 0; i < N; i++) given[i] = i + 1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t parent = getpid();
    if (pipe(begun)) return 1;
    pid_t child = fork();
    if (child == 0) _exit(reads(parent, begun[1]));
    if (read(begun[0], &byte, 1) != 1) return 1;
    double sum = work(1);
    waitpid(child, &status, 0);
    printf("%g %d\n", sum, status);
    return 0;
}
