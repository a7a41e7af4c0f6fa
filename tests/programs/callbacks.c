// Tables of function pointers, qsort and bsearch with a callback, a pointer changed inside the region.
//@ codelets: 3
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long (*operation)(long, long);
static long add(long a, long b) { return a + b; }
static long sub(long a, long b) { return a - b; }
static long mix(long a, long b) { return (a ^ b) + (a >> 3); }
static const operation fixed[] = {add, sub, mix};
static operation chosen[3];
static operation last;
static size_t (*length)(const char *) = strlen;

static int compared;
static int compare(const void *a, const void *b) {
    compared++;
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < 3; i++)
        chosen[i] = fixed[(i + argc) % 3];
    long value = argc;
    for (int i = 0; i < 5000; i++) {
        value = chosen[i % 3](value, i);
        value = fixed[(unsigned long)value % 3](value, 7);
        last = fixed[(unsigned long)value % 3];
    }
    static int numbers[500];
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 500; i++)
            numbers[i] = (int)((i * 7919u + (unsigned)value) % 1000);
        qsort(numbers, 500, sizeof *numbers, compare);
        int key = numbers[250 + round];
        value += bsearch(&key, numbers, 500, sizeof *numbers, compare) != NULL;
        value += (long)length("callback");
    }
    printf("%ld %d %d %ld\n", value, compared, numbers[77], last(1, 2));
}
