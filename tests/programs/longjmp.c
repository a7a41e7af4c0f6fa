// A region that is left by longjmp is refused with that reason; one that longjmp passes inside is captured.
//@ loop-refused: guarded@* ~ setjmp
//@ refused: leave@* ~ long
//@ codelets: 1
#include <setjmp.h>
#include <stdio.h>

static jmp_buf back;
static int hits;

static __attribute__((noinline)) void leave(int n) {
    for (int i = 0; i < n; i++) {
        hits += i;
        if (i == 40)
            longjmp(back, 5);
    }
}
static __attribute__((noinline)) void jump(int v) {
    if (v % 3 == 0)
        longjmp(back, v);
}
static __attribute__((noinline)) int once(int v) {
    if (setjmp(back))
        return 1;
    jump(v);
    return 0;
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
    int inside = 0;
    for (int i = 1; i < 100; i++)
        inside += once(i);
    escape();
    printf("%d %d %d\n", inside, hits, guarded(30));
}
