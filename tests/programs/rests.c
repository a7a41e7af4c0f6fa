// Threads at rest beside captured regions, in system calls whose memory a capture closes: without a time limit, with a short and
// with a long one, and one that the kernel has to finish first. None of them sees that it was interrupted.
//@ levels: -O2 -g ; -O0
//@ capture: work@*
//@ codelets: 1
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int ends[2], other[2], full[2];
static _Atomic int ready, over, bad;
static double values[10000];

static void check(int good) {
    if (!good) bad++;
}

static void *polls(void *timeout) {
    struct pollfd *one = malloc(sizeof *one);
    *one = (struct pollfd){.fd = ends[0], .events = POLLIN};
    ready++;
    check(poll(one, 1, *(int *)timeout) == 1 && one->revents == POLLIN);
    free(one);
    return NULL;
}

static void *awaits_events(void *timeout) {
    struct epoll_event *events = calloc(32, sizeof *events);
    int epoll = epoll_create1(0);
    events[0].events = EPOLLIN;
    check(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], events) == 0);
    ready++;
    check(epoll_wait(epoll, events, 32, *(int *)timeout) == 1 && events[0].events == EPOLLIN);
    free(events);
    return NULL;
}

static void *reads(void *unused) {
    char *bytes = malloc(100), *more = malloc(100);
    struct iovec parts[2] = {{bytes, 1}, {more, 100}};
    ready++;
    check(readv(other[0], parts, 2) == 2 && bytes[0] == 'a' && more[0] == 'b');
    free(bytes);
    free(more);
    return unused;
}

static void *writes(void *unused) {
    size_t size = 1 << 20;
    char *bytes = malloc(size);
    memset(bytes, 1, size);
    ready++;
    check(write(full[1], bytes, size) == (ssize_t)size);
    free(bytes);
    return unused;
}

static void *naps(void *unused) {
    struct timespec *left = malloc(sizeof *left);
    ready++;
    while (!over) {
        struct timespec time = {0, 500000};
        check(nanosleep(&time, left) == 0);
    }
    free(left);
    return unused;
}

static sem_t stop;

static void *awaits_stop(void *unused) {
    ready++;
    check(sem_wait(&stop) == 0);
    return unused;
}

__attribute__((noinline)) static double work(int k) {
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        values[i] = values[i] * 0.5 + k + i;
        sum += values[i];
    }
    return sum;
}

int main(void) {
    static int forever = -1, hour = 3600000;
    struct {
        void *(*run)(void *);
        void *argument;
    } all[] = {{polls, &forever}, {polls, &hour}, {awaits_events, &forever}, {awaits_events, &hour}, {reads, NULL}, {writes, NULL}, {naps, NULL}, {awaits_stop, NULL}};
    enum { N = sizeof all / sizeof *all };
    pthread_t threads[N];
    if (pipe(ends) || pipe(other) || pipe(full) || sem_init(&stop, 0, 0)) return 1;
    for (int i = 0; i < N; i++)
        if (pthread_create(&threads[i], NULL, all[i].run, all[i].argument)) return 1;
    while (ready < N) usleep(1000);
    usleep(50000);
    double sum = 0;
    sum += work(1);
    over = 1;
    sem_post(&stop);
    static char bytes[1 << 20];
    for (size_t at = 0; at < sizeof bytes;) at += (size_t)read(full[0], bytes, sizeof bytes - at);
    if (write(other[1], "ab", 2) != 2 || write(ends[1], "x", 1) != 1) return 1;
    for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
    printf("%g %d %d\n", sum, bad, bytes[sizeof bytes - 1]);
    return 0;
}
