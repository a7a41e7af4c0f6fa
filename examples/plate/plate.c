// Heat in a plate with a hot corner: explicit steps on a grid, in parallel.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void warm_up(double *grid, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            grid[i * n + j] = i < n / 8 && j < n / 8 ? 100.0 : 0.0;
}

static void step(double *restrict next, const double *restrict grid, int n) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++) {
            double here = grid[i * n + j];
            double around = grid[(i - 1) * n + j] + grid[(i + 1) * n + j] + grid[i * n + j - 1] + grid[i * n + j + 1];
            next[i * n + j] = here + 0.2 * (around - 4.0 * here);
        }
}

static double largest(const double *next, const double *grid, int n) {
    double most = 0.0;
#pragma omp parallel for reduction(max : most)
    for (int i = 0; i < n * n; i++)
        most = fmax(most, fabs(next[i] - grid[i]));
    return most;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    int steps = argc > 2 ? atoi(argv[2]) : 200;
    if (n < 8 || steps < 1) {
        fprintf(stderr, "usage: plate [SIZE [STEPS]]\n");
        return 2;
    }
    double *grid = malloc(sizeof(double) * (size_t)n * (size_t)n);
    double *next = malloc(sizeof(double) * (size_t)n * (size_t)n);
    if (!grid || !next)
        return 1;
    warm_up(grid, n);
    warm_up(next, n);
    for (int s = 1; s <= steps; s++) {
        step(next, grid, n);
        double *other = grid;
        grid = next;
        next = other;
        if (s % 50 == 0)
            printf("step %d: change %.6e\n", s, largest(grid, next, n));
    }
    double sum = 0.0;
    for (int i = 0; i < n * n; i++)
        sum += grid[i];
    printf("heat %.12e\n", sum);
    free(grid);
    free(next);
}
