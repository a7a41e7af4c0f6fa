// Functions that a resolver chooses: the region's own function is one, or calls some; others drop out with what resolves them.
//@ levels: -O0 -g ; -O2 ; -O2 -fPIE
//@ regions: 5
//@ codelets: 5
//@ flags: -O0 ; -O3 ; -O3 -march=native
#include <stdio.h>

int level = 2; // read by the resolver, before anything is captured
int *where = &level;

static long thrice(int n) {
    long r = 0;
    for (int i = 0; i < n; i++) r += i * 3L ^ level;
    return r;
}

static long five(int n) {
    long r = 0;
    for (int i = 0; i < n; i++) r += i * 5L ^ level;
    return r;
}

static long (*choose(void))(int) { return *where > 1 ? five : thrice; }
static long (*choose_other(void))(int) { return thrice; }
long chosen(int) __attribute__((ifunc("choose")));
long chosen_other(int) __attribute__((ifunc("choose_other")));
static long local(int) __attribute__((ifunc("choose")));
long (*volatile pointer)(int) = chosen;

int main(void) {
    long sum = 0;
    for (int t = 0; t < 300; t++) sum += chosen(200 + t) + pointer(t);
    for (int t = 0; t < 300; t++) sum ^= local(t) * t;
    for (int t = 0; t < 300; t++) sum += chosen_other(t) * t;
    printf("%ld %d\n", sum, level);
    return 0;
}
