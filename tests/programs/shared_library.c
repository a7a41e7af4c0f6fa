// Regions in a shared library: one alone, one that calls back into the program, and one of the program that calls the library.
//@ levels: -O0 ; -O2 -g ; -O3
//@ build: $CC $FLAGS -fPIC -shared -o libfilter.so $DIR/parts/filter.c && $CC $FLAGS -o program $DIR/shared_library.c -L. -lfilter -Wl,-rpath,'$ORIGIN' -lm
//@ codelets: 3
//@ refused: main@shared_library.c:20 ~ thread-local variables
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>

void smooth(double *values, int n);
double apply(double (*f)(double), const double *values, int n);
extern int smooth_calls;

static double weight = 0.75;
static double weighted(double x) { return x * weight; }

int main(void) {
    static double values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = (i * 37) % 101;
    for (int round = 0; round < 4; round++)
        smooth(values, 1000);
    double sum = apply(weighted, values, 1000);
    printf("%.17g %d\n", sum, smooth_calls);
}
