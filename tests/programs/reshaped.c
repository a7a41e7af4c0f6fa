// Static variables that -O2 keeps in another form: `limit`, which is 0 or 4096, as one bit, which any replay finds out by
// itself, and `origin` in parts, once a loop is unrolled. A replay under flags that leave it as written says so instead of
// computing with what is not there.
//@ levels: -O2 ; -O3 -g
//@ capture: sum@*
//@ invocation: 2
//@ flags: -O0 ; -O3 -march=native
//@ under: -O0 ~ sum@* ~ unchecked ~ uses the variable origin, which the captured program does not have as such
#include <stdio.h>

static int limit;
static int origin[3];
static double field[4100];

static void set_up(void) {
    limit = 4096;
    for (int i = 0; i < 3; i++)
        origin[i] = i + 1;
}

static double __attribute__((noinline)) sum(void) {
    double total = 0;
    for (int i = 0; i < limit; i++)
        total += field[i + origin[0]] * origin[2];
    return total;
}

int main(void) {
    for (int i = 0; i < 4100; i++)
        field[i] = 1.0 / (i + 1);
    double before = sum();
    set_up();
    printf("%.17g %.17g\n", before, sum());
    return 0;
}
