// Text that waits in the stream's buffer when a region begins: as much as the buffer holds, and more than a page of it, so that the
// region leaves the first page alone.
//@ levels: -O2 ; -O0
//@ codelets: 2
//@ flags: -O1
#include <stdio.h>

static int printed;

static void fill(int until) {
    while (printed < until) {
        putchar(printed % 64 == 63 ? '\n' : 'a' + printed % 23);
        printed++;
    }
}

static __attribute__((noinline)) void full(int n) {
    for (int i = 0; i < n; i++)
        printed += printf("%d of %d when full\n", i, n);
}

static __attribute__((noinline)) void further_on(int n) {
    for (int i = 0; i < n; i++)
        printed += printf("%d of %d further on\n", i, n);
}

int main(void) {
    fill(4096);
    full(5);
    fill(4096 + 3800);
    further_on(5);
}
