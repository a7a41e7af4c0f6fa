/* Memory in order, and more pages at random than the kernel allows mappings: `large ORDER MIB`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    size_t size = (size_t)atol(argv[2]) << 20;
    data = malloc(size);
    for (size_t i = 0; i < size / 4; i += 1024) data[i] = (unsigned)(i / 1024 + 1);
    if (!strcmp(argv[1], "order"))
        printf("%lu\n", in_order(size / 4));
    else
        printf("%lu\n", scattered(size / 4096));
    return 0;
}
