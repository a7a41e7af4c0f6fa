// A region that is left by longjmp is refused with that reason; the others are captured.
//@ loop-refused: guarded@* ~ setjmp
//@ refused: leave@* ~ longjmp
//@ codelets: 1
#include <setjmp.h>
#include <stdio.h>

static jmp_buf back;
static int hits;

static __attribute__((noinline)) void jump(int v) {
    if (v % 3 == 0)
        longjmp(back, v);
}
static __attribute__((noinline)) void leave(int n) {
    for (int i = 0; i < n; i++) {
        hits += i;
        jump(i == 40 ? 6 : 1);
    }
}
static __attribute__((noinline)) int guarded(int n) {
    volatile int caught = 0;
    for (volatile int i = 1; i < n; i++)
        if (setjmp(back) == 0)
            jump(i);
        else
            caught++;
    return caught;
}

static __attribute__((noinline)) void escape(void) {
    if (setjmp(back) == 0)
        leave(1000);
}

int main(void) {
    long sum = 0;
    for (int i = 1; i < 100; i++)
        sum += i * i;
    escape();
    printf("%ld %d %d\n", sum, hits, guarded(30));
}
