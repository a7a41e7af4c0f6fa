// Loops with several exits, a return out of them, a goto out of a nest, break at two levels, and a loop that never ends but by exit.
//@ codelets: 4
//@ flags: -O0 ; -O3 -march=native
//@ under: -O0 ~ find@* ~ different ~ at return value
#include <stdio.h>

static int grid[64][64];

static __attribute__((noinline)) int find(int wanted) {
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++) {
            if (grid[i][j] == wanted)
                return i * 64 + j;
            if (grid[i][j] < -5)
                goto bad;
        }
    return -1;
bad:
    grid[0][0]++;
    return -2;
}

static __attribute__((noinline)) int classify(const char *text) {
    int words = 0;
    for (;;) {
        switch (*text++) {
        case 0:
            return words;
        case ' ':
            words++;
            continue;
        case '!':
            goto shout;
        case '?':
            words += 100;
            goto out;
        }
    }
shout:
    words += 1000;
out:
    return words;
}

static __attribute__((noinline)) long collatz(long n) {
    long steps = 0, top = n;
    while (n != 1) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        if (n > top)
            top = n;
        if (++steps > 10000)
            break;
    }
    return steps * 1000003 + top;
}

int main(void) {
    for (int i = 0; i < 4096; i++)
        grid[i / 64][i % 64] = (i * 7919) % 4001;
    int a = find(77), b = find(4007);
    grid[40][2] = -9;
    int c = find(4007);
    printf("%d %d %d %d %d %d %ld\n", a, b, c, classify("a b c"), classify("a b!"), classify("a b c?"), collatz(97));
}
