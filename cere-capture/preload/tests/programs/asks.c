/* Regions that ask the kernel, one within another, beside a thread that asks for the time all the while. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static struct timespec stamps[4];
static long processes[2], seconds;
static unsigned char bytes[24];
static time_t (*volatile pointer)(time_t *) = time;
static atomic_int over;
static jmp_buf back;

static void *clock_reader(void *unused) {
    struct timespec last = {0}, now;
    long backwards = 0;
    while (!atomic_load(&over)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        backwards += now.tv_sec < last.tv_sec;
        last = now;
    }
    return (void *)backwards;
}

__attribute__((noinline)) static void inner(long n) {
    for (long i = 0; i < n; i++) {
        processes[i] = getpid();
        seconds += pointer(NULL);
    }
}

__attribute__((noinline)) static long outer(long n) {
    long got = 0;
    for (long i = 0; i < n; i++) {
        clock_gettime(CLOCK_REALTIME, &stamps[i]);
        got += getrandom(bytes, 5 + i, 0);
        if (i == 1) inner(2);
    }
    return got;
}

/* Left in the middle; the next reading of the clock is outside. */
__attribute__((noinline)) static void leaves(long n) {
    for (long i = 0; i < n; i++) {
        if (i == 3) longjmp(back, 1);
        clock_gettime(CLOCK_REALTIME, &stamps[i]);
    }
}

int main(void) {
    pthread_t reader;
    void *backwards;
    pthread_create(&reader, NULL, clock_reader, NULL);
    long got = outer(4);
    if (!setjmp(back)) leaves(10);
    int later = time(NULL) >= stamps[2].tv_sec && clock() > 0;
    atomic_store(&over, 1);
    pthread_join(reader, &backwards);
    printf("%ld %d %d %ld\n", got, processes[1] == getpid(), later, (long)backwards);
    return 0;
}
