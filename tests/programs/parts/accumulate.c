// A library that keeps its state to itself. Built by a compiler that knows nothing of CERE.
#include <stdlib.h>

static double total, history[5000];
static double *blocks[64];
static long calls;
double accumulated_scale = 1.5;

void accumulate(double value, double (*weigh)(double)) {
    total += weigh(value) * accumulated_scale;
    history[calls % 5000] += total;
    if (!blocks[calls % 64])
        blocks[calls % 64] = calloc(8, sizeof(double));
    blocks[calls % 64][calls % 8] += value;
    calls++;
}

double accumulated(int i) { return total + history[i % 5000] + (blocks[i % 64] ? blocks[i % 64][i % 8] : 0); }

static double twice(double x) { return 2 * x; }
static double (*choose(void))(double) { return twice; }
double chosen(double) __attribute__((ifunc("choose")));
