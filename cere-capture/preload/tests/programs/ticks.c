/* A handler with a loop, for a signal that comes all the time. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static double data[20000];
static volatile double sum;
static volatile int count;

__attribute__((noinline)) static double handle(int n) {
    double result = 0;
    for (int i = 0; i < n; i++) result += i * 0.5;
    return result;
}

static void tick(int signal) {
    count += signal;
    sum = handle(1000);
}

__attribute__((noinline)) static double work(int n) {
    double result = 0;
    for (int i = 0; i < n; i++) {
        data[i % 20000] = data[i % 20000] * 0.5 + i;
        result += data[i % 20000];
    }
    return result;
}

int main(void) {
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &every, NULL);
    double result = 0;
    for (int i = 0; i < 40; i++) result += work(300000);
    while (!count) {}
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%g %g\n", result, sum);
    return 0;
}
