// Static variables that -O2 keeps in another form: `limit`, which is 0 or 4096, and `sign`, as one bit each, the latter in as many
// bytes under the same name, and `origin` in parts, once a loop is unrolled. A replay under flags that leave them as written has
// their values all the same.
//@ levels: -O2 ; -O3 -g
//@ capture: sum@*
//@ invocation: 1,2
//@ flags: -O0 ; -O1 ; -O3 -march=native
#include <stdio.h>

static int limit;
static signed char sign = 7;
static int origin[3];
static long field[4100];

static void set_up(void) {
    limit = 4096;
    sign = -3;
    for (int i = 0; i < 3; i++)
        origin[i] = i + 1;
}

static long __attribute__((noinline)) sum(void) {
    long total = 0;
    for (int i = 0; i < limit; i++)
        total += field[i + origin[0]] * origin[2] * sign;
    return total;
}

int main(void) {
    for (int i = 0; i < 4100; i++)
        field[i] = i * i % 977;
    long before = sum();
    set_up();
    printf("%ld %ld\n", before, sum());
    return 0;
}
