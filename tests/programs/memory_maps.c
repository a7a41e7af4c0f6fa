// mmap, munmap and mremap inside the region.
//@ levels: -O2 -g ; -O0
//@ codelets: 2
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static __attribute__((noinline)) long maps(int n) {
    long sum = 0;
    char *kept = NULL;
    size_t size = 4096;
    for (int i = 0; i < n; i++) {
        size_t length = (size_t)(i + 1) * 8192;
        char *block = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            return -1;
        for (size_t j = 0; j < length; j += 100)
            block[j] = (char)(j + (size_t)i);
        sum += block[400] + block[500];
        if (!kept) {
            kept = block;
            size = length;
        } else if (i % 4 == 0) {
            kept = mremap(kept, size, size + 4096, MREMAP_MAYMOVE);
            size += 4096;
            kept[size - 1] = 9;
            munmap(block, length);
        } else
            munmap(block, length);
    }
    for (size_t j = 0; j < size; j++)
        sum = sum * 3 + kept[j];
    munmap(kept, size);
    return sum;
}

int main(void) { printf("%ld %ld\n", maps(20), maps(3)); }
