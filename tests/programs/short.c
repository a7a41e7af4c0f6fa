// Loops that the code shows to be too short stay in place, all others are regions.
//@ short-loops: refused
//@ levels: -O1 ; -O2 -g ; -O3 ; -Os
//@ loop-refused: skip@* ~ too short: a search
//@ loop-refused: lookup@* ~ too short: a search
//@ loop-refused: parity@* ~ too short: at most
//@ loop-refused: ones@* ~ too short: at most 1000 instructions, in a function that its unit does not call
//@ loop-refused: small@* ~ too short: at most
//@ regions: 10
//@ codelets: 8
#include <stdio.h>
#include <stdlib.h>

#define N 20000

struct entry {
    struct entry *next;
    unsigned key, count;
};
static struct entry *table[64];

static const char *skip(const char *p, char c) {
    while (*p == c)
        p++;
    return p;
}

static struct entry *lookup(unsigned key) {
    for (struct entry *e = table[key % 64]; e; e = e->next)
        if (e->key == key)
            return e;
    return NULL;
}

// Other files may call it, in loops or not.
unsigned parity(unsigned value) {
    unsigned sum = 0;
    for (int i = 0; i < 32; i++)
        sum ^= value >> i & 1;
    return sum;
}

// Other files may call it, this one does not.
unsigned ones(unsigned value) {
    unsigned count = 0;
    for (int i = 0; i < 32; i++)
        count += value >> i & 1;
    return count;
}

static void small(double a[4][4], const double b[4][4]) {
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            a[i][j] += b[j][i];
}

// Called once: region 1.
static const char *once(const char *p, char c) {
    while (*p == c)
        p++;
    return p;
}

// The whole list, as long as it may be: region 2.
static unsigned total(const struct entry *e) {
    unsigned sum = 0;
    for (; e; e = e->next)
        sum += e->count;
    return sum;
}

// Not known how long: region 3.
static double dot(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

// Few steps that call what takes long: region 4.
static double four(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += dot(a, b, n - i);
    return sum;
}

// Many steps: region 5.
static unsigned many(unsigned value) {
    for (int i = 0; i < 5000; i++)
        value = value * 1664525u + 1013904223u;
    return value;
}

// Regions 6 to 10.
int main(int argc, char **argv) {
    (void)argv;
    int n = N * argc;
    char *text = malloc(n + 1);
    double *a = malloc(n * sizeof *a), m[4][4] = {{0}}, o[4][4] = {{1, 2}, {3, 4}};
    for (int i = 0; i < n; i++) {
        text[i] = i % 5 ? ' ' : 'x';
        a[i] = i;
    }
    text[n] = 0;
    for (unsigned i = 0; i < 1000; i++) {
        struct entry *e = malloc(sizeof *e);
        *e = (struct entry){table[i % 64], i, i};
        table[i % 64] = e;
    }
    unsigned sum = 0;
    for (const char *p = text; *p;) {
        p = skip(p, ' ');
        if (*p)
            p++;
        sum++;
    }
    for (unsigned i = 0; i < 3000; i++) {
        struct entry *e = lookup(i * 7 % 1000);
        sum += parity(i) + (e ? ++e->count : 0);
        small(m, o);
    }
    double s = 0;
    for (int i = 0; i < 5; i++) {
        s += four(a, a, n);
        sum += total(table[i]) + many(i);
    }
    printf("%u %g %g %c\n", sum, s, m[1][0], *once(text + 1, ' '));
}
