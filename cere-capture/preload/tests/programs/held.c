/* A thread that waits for a page until the region has ended, and calls of mprotect that fail half way: `held WHAT`. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define ROUNDS 3

/* Much, and behind it a word of the region and one of the other thread. */
static struct {
    _Alignas(PAGE) volatile char much[4096 * PAGE];
    volatile long words[2];
} both;
static _Alignas(PAGE) volatile int stop;
static char *area;
static volatile long sum;

static void *writes(void *unused) {
    do both.words[1]++;
    while (!stop);
    return unused;
}

/* Its own word on the page of the other thread's is the last thing that it writes. */
__attribute__((noinline)) static void work(long round, int n) {
    for (int i = 0; i < n; i++) {
        both.much[i % 4096 * PAGE] = (char)round;
        if (i == n - 1) both.words[0] = round;
    }
}

__attribute__((noinline)) static void change(int n) {
    for (int i = 0; i < n; i++) {
        area[i] = 1;
        errno = 0;
        int failed = mprotect(area, 4 * PAGE, PROT_READ);
        sum += failed && errno == ENOMEM;
        sum += area[i];
    }
}

__attribute__((noinline)) static void add(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

/* Whether it may be written. */
static int writable(char *at) {
    int ends[2];
    if (pipe(ends) || write(ends[1], "x", 1) != 1) exit(3);
    int can = read(ends[0], at, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return can;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "writes")) {
        pthread_t thread;
        pthread_create(&thread, NULL, writes, NULL);
        while (!both.words[1]) {}
        for (long round = 1; round <= ROUNDS; round++) work(round, 4096);
        stop = 1;
        pthread_join(thread, NULL);
    } else {
        area = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        area[3 * PAGE] = 1;
        munmap(area + 2 * PAGE, PAGE);
        add(10);
        change(1);
        add(10);
        printf("%d %d\n", writable(area), writable(area + 3 * PAGE));
    }
    printf("%ld\n", sum);
    return 0;
}
