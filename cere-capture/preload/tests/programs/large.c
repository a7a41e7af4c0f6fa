/* Memory in order (`order`, or `beside` a thread that rests), and more pages at random than the kernel allows mappings
 * (`random`): `large ORDER MIB [FILE]`. FILE gets its peak resident memory in KiB. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned *data;

__attribute__((noinline)) static unsigned long in_order(size_t words) {
    unsigned long sum = 0;
    for (size_t i = 0; i < words; i += 512) {
        sum += data[i];
        data[i] = (unsigned)i;
    }
    return sum;
}

/* Every other page once, in an order that jumps about. */
__attribute__((noinline)) static unsigned long scattered(size_t pages) {
    unsigned long sum = 0;
    for (size_t i = 0; i < pages / 2; i++) {
        size_t page = i * 40507 % (pages / 2) * 2;
        sum += data[page * 1024 + i % 1024];
        data[page * 1024 + 5] = (unsigned)page;
    }
    return sum;
}

static void *rest(void *unused) {
    pause();
    return unused;
}

static void write_peak(const char *file) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r"), *out = fopen(file, "w");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6)) fprintf(out, "%ld\n", atol(line + 6));
    fclose(status);
    fclose(out);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    size_t size = (size_t)atol(argv[2]) << 20;
    data = malloc(size);
    for (size_t i = 0; i < size / 4; i += 1024) data[i] = (unsigned)(i / 1024 + 1);
    pthread_t thread;
    if (!strcmp(argv[1], "beside") && pthread_create(&thread, 0, rest, 0)) return 3;
    if (strcmp(argv[1], "random"))
        printf("%lu\n", in_order(size / 4));
    else
        printf("%lu\n", scattered(size / 4096));
    if (argc == 4) write_peak(argv[3]);
    return 0;
}
