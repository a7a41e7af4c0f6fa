// Nearly 2 GiB of variables: little is left within reach of them for a replay's own parts.
//@ levels: -O0 ; -O2 -no-pie -fno-pie
//@ flags: -O3
#include <stdio.h>

static char zeros[2040L << 20];

__attribute__((noinline)) static long fill(int k) {
    long sum = 0;
    for (long i = 0; i < 256; i++) {
        zeros[i * (sizeof zeros / 256)] += (char)k;
        sum += zeros[i * 64] + zeros[sizeof zeros - 1 - i * 64];
    }
    return sum;
}

int main(void) {
    long sum = 0;
    for (int k = 0; k < 3; k++)
        sum += fill(k);
    printf("%ld\n", sum);
    return 0;
}
