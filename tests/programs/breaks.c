// Memory behind the program's data (sbrk), and memory that grows down by itself.
//@ levels: -O0 -g ; -O2
//@ flags: -O0 ; -O3
//@ codelets: 3
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *last;
static char *top;

__attribute__((noinline)) static long take(int k) {
    long sum = 0;
    for (int j = 0; j < 4; j++) {
        last = sbrk(8200);
        memset(last, j + k, 8200);
        sum += last[100] + ((char *)sbrk(0) - last);
    }
    return sum;
}

__attribute__((noinline)) static long give(int n) {
    long sum = 0;
    for (int j = 0; j < n; j++) {
        char *end = sbrk(0);
        sum += brk(end - 4100);
        sum += *(end - 4101 - j);
        char *again = sbrk(12300);
        sum += again[8000];
        memset(again, j, 12300);
    }
    return sum;
}

__attribute__((noinline)) static long down(int k, int first) {
    long sum = 0;
    for (int i = first; i < first + 8; i++) {
        volatile char *at = top - i * 4096L + 100;
        *at += i * k;
        sum += *at;
    }
    return sum;
}

int main(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE;
    top = mmap((void *)0x600000000000, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (top == MAP_FAILED)
        return 2;
    long sum = 0;
    for (int k = 1; k < 4; k++) {
        sum += take(k);
        sum += give(3);
        sum += down(k, 8 * k - 8);
        sum += down(k, 4 * k);
    }
    printf("%ld %d\n", sum, last[8199]);
    return 0;
}
