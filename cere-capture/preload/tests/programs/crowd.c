/* Other threads that start and end threads, fork, and bring stacks of their own for signals or for everything. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;
static int failures;
static double data[20000];

static void *leaf(void *argument) { return argument; }

static void *start(void *unused) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while (!atomic_load(&stop)) {
        pthread_t thread;
        pthread_create(&thread, NULL, leaf, NULL);
        pthread_join(thread, NULL);
        pthread_create(&thread, &detached, leaf, NULL);
    }
    return unused;
}

static void *children(void *unused) {
    while (!atomic_load(&stop)) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) _exit(3);
        waitpid(child, &status, 0);
        failures += !WIFEXITED(status) || WEXITSTATUS(status) != 3;
    }
    return unused;
}

static void *allocate(void *unused) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    while (!atomic_load(&stop)) {
        char *block = malloc(5000);
        memset(block, 1, 5000);
        free(block);
    }
    return unused;
}

__attribute__((noinline)) static double inner(int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        data[i] = data[i] * 0.5 + i;
        sum += data[i];
    }
    return sum;
}

__attribute__((noinline)) static double outer(int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += inner(10000 + i);
    return sum;
}

int main(void) {
    pthread_t threads[4];
    pthread_attr_t placed;
    pthread_attr_init(&placed);
    size_t block = (size_t)malloc(1 << 20);
    pthread_attr_setstack(&placed, (void *)((block + 115) & ~15ul), (1 << 20) - 4080);
    pthread_create(&threads[0], NULL, start, NULL);
    pthread_create(&threads[1], NULL, children, NULL);
    pthread_create(&threads[2], NULL, allocate, NULL);
    pthread_create(&threads[3], &placed, allocate, NULL);
    double sum = 0;
    for (int i = 0; i < 30; i++) sum += outer(20);
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("%g %d\n", sum, failures);
    return 0;
}
