// Threads beside the captured one: what they write, what they wait for, their ends. They stand still while an invocation is
// captured, so that it is exact, or it is refused because it needs them.
//@ levels: -O2 -g ; -O0
//@ capture: feed@*
//@ capture: beside@*
//@ capture: woken@*
//@ capture: joins@*
//@ refused: woken@* ~ other thread
//@ refused: joins@* ~ calls pthread_tryjoin_np: it waits for another thread
//@ codelets: 2
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    int head, tail, over, jobs[64];
    long sum;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void *takes_jobs(void *unused) {
    pthread_mutex_lock(&queue.lock);
    for (;;) {
        while (queue.head == queue.tail && !queue.over) pthread_cond_wait(&queue.more, &queue.lock);
        if (queue.head == queue.tail) break;
        queue.sum += queue.jobs[queue.head++ % 64];
    }
    pthread_mutex_unlock(&queue.lock);
    return unused;
}

static double values[1000];
static _Atomic long noise[512];
static _Atomic int over, flag;

// Each signal wakes the worker, which would change the queue meanwhile.
__attribute__((noinline)) static void feed(int n) {
    for (int i = 0; i < n; i++) {
        for (int k = 1; k < 1000; k++) values[k] += values[k - 1] * 0.25 + i;
        pthread_mutex_lock(&queue.lock);
        queue.jobs[queue.tail++ % 64] = i;
        pthread_cond_signal(&queue.more);
        pthread_mutex_unlock(&queue.lock);
    }
}

static void *makes_noise(void *unused) {
    while (!over)
        for (int i = 0; i < 512; i++) noise[i]++;
    return unused;
}

// It reads and writes what another thread writes all the time.
__attribute__((noinline)) static double beside(int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        values[i % 1000] += i;
        sum += values[i % 1000] + (double)(noise[i % 512]++ & 1);
    }
    return sum;
}

static void *sets_flag(void *unused) {
    usleep(100000);
    flag = 1;
    return unused;
}

__attribute__((noinline)) static long woken(void) {
    long turns = 0;
    while (!flag) values[turns++ % 1000] += 1;
    return turns;
}

static void *ends(void *argument) { return argument; }

// They have ended: nothing waits, but their state lies where they were.
__attribute__((noinline)) static int joins(pthread_t *threads, int n) {
    int joined = 0;
    for (int i = 0; i < n; i++) joined += pthread_tryjoin_np(threads[i], NULL) == 0;
    return joined;
}

int main(void) {
    pthread_t worker, noisy, setter, done[4];
    pthread_create(&worker, NULL, takes_jobs, NULL);
    usleep(20000);
    feed(10);
    pthread_mutex_lock(&queue.lock);
    queue.over = 1;
    pthread_cond_signal(&queue.more);
    pthread_mutex_unlock(&queue.lock);
    pthread_join(worker, NULL);
    pthread_create(&noisy, NULL, makes_noise, NULL);
    while (!noise[511]) usleep(1000);
    beside(5000);
    over = 1;
    pthread_join(noisy, NULL);
    pthread_create(&setter, NULL, sets_flag, NULL);
    usleep(20000);
    int waited = woken() > 0;
    pthread_join(setter, NULL);
    for (int i = 0; i < 4; i++) pthread_create(&done[i], NULL, ends, NULL);
    usleep(100000);
    printf("%ld %d %d\n", queue.sum, waited, joins(done, 4));
    return 0;
}
