// Static variables and functions with one name in two files, and static variables in functions.
//@ files: parts/statics_other.c
//@ regions: 3
//@ codelets: 3
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>

static long total = 1;
static long table[64];
static long step(long x) { return x * 3 + total; }
long other(int n);

static long counted(int n) {
    static long calls, history[16];
    calls++;
    for (int i = 0; i < n; i++)
        history[i & 15] += calls * i;
    return history[calls & 15];
}

static long own(int n) {
    for (int i = 0; i < n; i++) {
        total += step(i) & 0xff;
        table[i & 63] ^= total;
    }
    return total + table[5];
}

int main(void) {
    long sum = 0;
    sum += own(1000) + other(1000) + counted(100) + counted(200) + own(10) + other(10);
    printf("%ld\n", sum);
}
