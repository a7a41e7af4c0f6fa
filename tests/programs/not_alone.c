// Regions whose memory no replay has: dropped parts of a mapped file, which its content fills again, the stack of another thread that
// rests in a call with a long time limit, and memory that has two addresses. The stack of one that stands still is memory.
//@ levels: -O2 -g ; -O0
//@ capture: drops@*
//@ capture: borrows@*
//@ capture: work@*
//@ refused: drops@* ~ drop memory of a file
//@ capture: leans@*
//@ refused: leans@* ~ stack of another thread
//@ capture: doubles@*
//@ refused: doubles@* ~ mapped at two addresses
//@ codelets: 2
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

static long sum, values[512];
static char *file;
static long *volatile lent, *volatile lent_long;

__attribute__((noinline)) static void work(int n) {
    for (int i = 0; i < n; i++) sum += values[i % 512]++;
}

__attribute__((noinline)) static void drops(int n) {
    for (int i = 0; i < n; i++) {
        file[i % 4 * PAGE] = (char)i;
        if (i % 4 == 3) madvise(file, 4 * PAGE, MADV_DONTNEED);
        sum += file[0];
    }
}

static void *lends(void *unused) {
    long own[64];
    memset(own, 1, sizeof own);
    lent = own;
    for (;;) pause();
    return unused;
}

static void *sleeps(void *unused) {
    long own[64];
    memset(own, 1, sizeof own);
    lent_long = own;
    for (;;) sleep(10000);
    return unused;
}

__attribute__((noinline)) static void leans(int n) {
    for (int i = 0; i < n; i++) sum += lent_long[i % 64]++ & 7;
}

__attribute__((noinline)) static void borrows(int n) {
    for (int i = 0; i < n; i++) sum += lent[i % 64]++ & 7;
}

__attribute__((noinline)) static void doubles(int *one, volatile int *other, int n) {
    for (int i = 0; i < n; i++) {
        one[i % 8] = i;
        sum += other[i % 8];
    }
}

int main(int argc, char **argv) {
    (void)argc;
    int from = open(argv[0], O_RDONLY);
    file = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, from, 0);
    if (file == MAP_FAILED) return 1;
    work(1000);
    drops(50);
    int memory = memfd_create("two", 0), both = PROT_READ | PROT_WRITE;
    if (memory < 0 || ftruncate(memory, PAGE)) return 1;
    int *one = mmap(NULL, PAGE, both, MAP_SHARED, memory, 0), *other = mmap(NULL, PAGE, both, MAP_SHARED, memory, 0);
    doubles(one, other, 100);
    pthread_t thread;
    pthread_create(&thread, NULL, lends, NULL);
    pthread_create(&thread, NULL, sleeps, NULL);
    while (!lent || !lent_long) usleep(1000);
    usleep(30000);
    borrows(1000);
    leans(1000);
    printf("%ld\n", sum);
    return 0;
}
