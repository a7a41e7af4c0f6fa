// Loops that leave no trace once they are optimised, called with the stack pointer at each distance from a page's end: the
// frame that they are called from is compared, and its argument is there for code that still loads it.
//@ levels: -O1 ; -O2
//@ capture: empty@*
//@ invocation: 1-17
//@ flags: -O0
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>

static __attribute__((noinline)) void empty(long n) {
    for (long i = 0; i < n; i++) {
    }
}

static __attribute__((noinline)) int at(int step) {
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    volatile char *room = alloca((frame & 4095) + 16 * step);
    room[0] = 1;
    empty(1000 + step);
    return room[0];
}

int main(void) {
    int calls = 0;
    for (int step = 0; step < 17; step++) calls += at(step);
    printf("%d\n", calls);
    return 0;
}
