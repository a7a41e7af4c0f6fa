/* Mappings made, moved, protected and dropped inside a region; deep and growing stacks. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char *fixed;

__attribute__((noinline)) static long maps(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        char *block = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(block, i + 1, 1 << 15);
        fixed[i * 4096] += 1;
        fixed = mremap(fixed, 65536u << i, 65536u << (i + 1), MREMAP_MAYMOVE);
        madvise(fixed + 32768, 4096, MADV_DONTNEED);
        sum += fixed[i * 4096] + fixed[32768] + block[5];
        mprotect(fixed, 4096, PROT_READ);
        sum += fixed[1];
        mprotect(fixed, 4096, PROT_READ | PROT_WRITE);
        fixed[1] = (char)i;
        munmap(block, 1 << 16);
        char *top = sbrk(8192);
        top[8191] = 3;
        sum += top[8191];
    }
    return sum;
}

__attribute__((noinline)) static long deep(int n) {
    char block[65536];
    memset(block, n, sizeof block);
    long below = n ? deep(n - 1) : 0;
    return below + block[n * 300];
}

__attribute__((noinline)) static long stacks(int n) {
    char large[2 << 20];
    memset(large, 1, sizeof large);
    long sum = 0;
    for (int i = 0; i < n; i++) {
        sum += deep(40) + large[i * 500000];
    }
    return sum;
}

int main(void) {
    fixed = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(fixed, 9, 65536);
    printf("%ld\n", maps(4));
    printf("%ld\n", stacks(4));
    return 0;
}
