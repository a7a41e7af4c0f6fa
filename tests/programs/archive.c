// A static archive, an assembler file, a unit without instrumentation and a non-PIE link.
//@ levels: -O2 ; -O2 -g -fno-pie -no-pie ; -O0
//@ build: $CC $FLAGS -c -o sum.o $DIR/parts/archive_sum.c && $CC -c -o scale.o $DIR/parts/scale.s && clang-22 $FLAGS -c -o raw.o $DIR/parts/archive_raw.c && rm -f libsum.a && ar rcs libsum.a sum.o scale.o raw.o && $CC $FLAGS -c -o main.o $DIR/archive.c && $CC $FLAGS -o program main.o -L. -lsum
//@ codelets: 2
#include <stdio.h>

long sum(const long *values, int n);
extern long sum_state;

int main(void) {
    static long values[2000];
    for (int i = 0; i < 2000; i++)
        values[i] = i * i % 997;
    long result = sum(values, 2000);
    printf("%ld %ld\n", result, sum_state);
}
