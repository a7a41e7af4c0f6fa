// Addresses of string literals, constant tables and functions that the region stores.
//@ codelets: 2
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>

static const char *names[64];
static const int *rows[64];
static const char *last;

static const char *name_of(int i) {
    switch (i % 4) {
    case 0:
        return "nought";
    case 1:
        return "one";
    case 2:
        return "two";
    default:
        return "many";
    }
}

int main(void) {
    static const int table[4][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}};
    for (int i = 0; i < 64; i++) {
        names[i] = name_of(i);
        rows[i] = table[i % 4];
        if (i == 40)
            last = __func__;
    }
    long sum = 0;
    for (int i = 0; i < 64; i++)
        sum += names[i][1] * rows[i][2];
    printf("%ld %s\n", sum, last);
}
