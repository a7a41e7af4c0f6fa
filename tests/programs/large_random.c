// 200 MB touched at random: more separate pages than the kernel allows mappings.
//@ levels: -O2
//@ codelets: 1
//@ capture: scatter@*
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) unsigned long scatter(unsigned *data, size_t pages, int rounds) {
    unsigned long sum = 0, seed = 1;
    for (int i = 0; i < rounds; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t at = (seed >> 33) % pages * 1024 + (seed >> 20) % 1024;
        sum = sum * 3 + data[at];
        if (i % 4 == 0)
            data[at] = (unsigned)i;
    }
    return sum;
}

int main(void) {
    size_t pages = 100000;
    unsigned *data = malloc(pages * 4096);
    for (size_t i = 0; i < pages * 1024; i++)
        data[i] = (unsigned)(i * 2654435761u) >> 16 & 15;
    printf("%lu\n", scatter(data, pages, 70000));
}
