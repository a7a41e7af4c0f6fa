// Assembly at file level: what it defines stays the program's, known to others or not.
//@ levels: -O0 -g ; -O2 ; -O2 -fPIE
//@ regions: 3
//@ codelets: 3
//@ flags: -O0 ; -O3 ; -Os
#include <stdio.h>

__asm__(".text\n"
        ".globl twice\n.type twice, @function\n"
        "twice: lea (%rdi, %rdi), %rax\n\tret\n.size twice, . - twice\n"
        "thrice: lea (%rdi, %rdi, 2), %rax\n\tret\n"
        ".data\n.balign 8\n"
        ".globl counter\n.type counter, @object\n.size counter, 8\ncounter: .quad 5\n"
        "hidden: .quad 7\n"
        ".text\n");
long twice(long);
long thrice(long) __attribute__((visibility("hidden")));
extern long counter;
extern long hidden __attribute__((visibility("hidden")));

static long other(long n) {
    long r = 0;
    for (long i = 0; i < n; i++) r ^= i * 7;
    return r;
}

int main(void) {
    long sum = 0;
    counter = 17;
    hidden = 2;
    for (long t = 0; t < 3000; t++) {
        sum += twice(t) + counter;
        counter += t & 3;
    }
    for (long t = 0; t < 3000; t++) {
        sum += thrice(t) ^ hidden;
        hidden += 3;
    }
    printf("%ld %ld %ld\n", sum + other(5000), counter, hidden);
    return 0;
}
