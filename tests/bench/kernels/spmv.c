// Conjugate gradient on a sparse matrix: many small vector loops and one sparse product a step.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int n = 60000, *start, *column;
static double *value;

static void multiply(const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int k = start[i]; k < start[i + 1]; k++)
            sum += value[k] * x[column[k]];
        y[i] = sum;
    }
}
static double dot(const double *x, const double *y) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}
static void axpy(double a, const double *x, double *y) {
    for (int i = 0; i < n; i++)
        y[i] += a * x[i];
}

int main(void) {
    start = malloc(sizeof(int) * (size_t)(n + 1));
    column = malloc(sizeof(int) * (size_t)n * 12);
    value = malloc(sizeof(double) * (size_t)n * 12);
    unsigned seed = 9;
    int k = 0;
    for (int i = 0; i < n; i++) {
        start[i] = k;
        column[k] = i;
        value[k++] = 16;
        for (int j = 0; j < 11; j++) {
            seed = seed * 1664525u + 1013904223u;
            column[k] = (int)(seed >> 8) % n;
            value[k++] = ((seed >> 4) % 100) / 200.0;
        }
    }
    start[n] = k;
    double *x = calloc((size_t)n, 8), *r = calloc((size_t)n, 8), *p = calloc((size_t)n, 8), *q = calloc((size_t)n, 8);
    for (int i = 0; i < n; i++)
        r[i] = p[i] = 1;
    double rho = dot(r, r);
    for (int step = 0; step < 200; step++) {
        multiply(p, q);
        double alpha = rho / dot(p, q);
        axpy(alpha, p, x);
        axpy(-alpha, q, r);
        double next = dot(r, r);
        for (int i = 0; i < n; i++)
            p[i] = r[i] + next / rho * p[i];
        rho = next;
    }
    printf("%.12g %.12g\n", rho, x[n / 2]);
}
