// The program ends inside a region: that region cannot be captured, the others are, and the exit status is the program's.
//@ status: 7
//@ refused: finish@* ~ still running
//@ codelets: 1
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) void maybe(int i) {
    if (i == 3)
        exit(7);
}
static __attribute__((noinline)) void finish(int n) {
    for (int i = 0; i < n; i++) {
        printf("%d\n", i);
        maybe(i);
    }
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += i * i % 7;
    printf("%ld\n", sum);
    finish(10);
}
