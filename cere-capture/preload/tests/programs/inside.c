/* System calls of other threads around a region: one that waits for data, or some that never cease. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int ends[2];
static volatile int stop;
static long got, failed;

static void *waits(void *block) {
    char own[100];
    got = read(ends[0], block ? block : own, sizeof own);
    if (got < 0) failed++;
    return NULL;
}

static void *writes(void *block) {
    struct iovec *parts = malloc(sizeof *parts);
    *parts = (struct iovec){block, 1 << 20};
    if (writev(ends[1], parts, 1) != 1 << 20) failed++;
    free(parts);
    return NULL;
}

static void *calls(void *unused) {
    (void)unused;
    char *block = malloc(1 << 16);
    memset(block, 1, 1 << 16);
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    while (!stop) {
        if (read(zero, block, 4096) != 4096) failed++;
        if (write(null, block, 1 << 16) != 1 << 16) failed++;
        got++;
    }
    return NULL;
}

__attribute__((noinline)) static long work(long *data, long n) {
    long sum = 0;
    for (long k = 0; k < 300; k++)
        for (long i = 0; i < n; i++) sum += data[i] = data[i] * 3 + i;
    return sum;
}

int main(int argc, char **argv) {
    int wait = argc > 1 && !strcmp(argv[1], "wait");
    int stack = argc > 1 && !strcmp(argv[1], "stack");
    int parts = argc > 1 && !strcmp(argv[1], "parts");
    pthread_t threads[2];
    if (pipe(ends)) return 9;
    int count = wait || stack || parts ? 1 : 2;
    void *(*run)(void *) = wait || stack ? waits : parts ? writes : calls;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, run, stack ? NULL : malloc(1 << 20));
    usleep(20000);
    long *data = calloc(1 << 16, 8);
    long sum = work(data, 1 << 16);
    stop = 1;
    if ((wait || stack) && write(ends[1], "hello", 5) != 5) return 8;
    for (int left = parts ? 1 << 20 : 0; left > 0;) left -= read(ends[0], data, left < 1 << 19 ? left : 1 << 19);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    printf("%ld %ld\n", sum, failed);
    return failed != 0;
}
