// The state of a library that was not instrumented is captured, put back and compared like the program's.
//@ levels: -O0 ; -O2 -g ; -O3
//@ build: /usr/bin/gcc -O2 -fPIC -shared -o libaccumulate.so $DIR/parts/accumulate.c && $CC $FLAGS -o program $DIR/foreign_library.c -L. -laccumulate -Wl,-rpath,'$ORIGIN'
//@ invocation: 1,3
//@ codelets: 4
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>

void accumulate(double value, double (*weigh)(double));
double accumulated(int i), chosen(double x);
extern double accumulated_scale;

static double bias = 0.25;
static double weigh(double x) { return x + bias; }

__attribute__((noinline)) static void feed(int n) {
    for (int i = 0; i < n; i++)
        accumulate(chosen(i * 0.5), weigh);
}

__attribute__((noinline)) static double sum(int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += accumulated(i);
    return sum;
}

int main(void) {
    double all = 0;
    feed(100);
    all += sum(10);
    accumulated_scale = 2.5;
    feed(7000);
    all += sum(5000);
    feed(3000);
    all += sum(5000);
    printf("%.17g\n", all);
}
