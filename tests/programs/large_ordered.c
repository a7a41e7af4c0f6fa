// 1 GiB touched in order inside a region.
//@ levels: -O2
//@ codelets: 1
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) unsigned long touch(unsigned long *data, size_t n) {
    unsigned long sum = 0;
    for (size_t i = 0; i < n; i += 8) {
        sum += data[i];
        data[i] = i;
    }
    return sum;
}

int main(void) {
    size_t n = ((size_t)1 << 30) / sizeof(unsigned long);
    unsigned long *data = calloc(n, sizeof *data);
    printf("%lu\n", touch(data, n));
    printf("%lu\n", touch(data, n / 1024));
}
