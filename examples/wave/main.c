/* A point source in a medium of two layers: usage: wave [points a side] [steps] */
#include "wave.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int grid_init(struct grid *g, int n) {
    size_t bytes = (size_t)n * n * sizeof(double);
    g->n = n;
    g->past = calloc(1, bytes);
    g->now = calloc(1, bytes);
    g->next = calloc(1, bytes);
    g->speed = malloc(bytes);
    if (!g->past || !g->now || !g->next || !g->speed) return -1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) g->speed[(long)i * n + j] = i < n / 2 ? 0.16 : 0.04;
    return 0;
}

void grid_free(struct grid *g) {
    free(g->past);
    free(g->now);
    free(g->next);
    free(g->speed);
}

void source(struct grid *g, int step) {
    double t = (step - 30) * 0.12;
    g->now[(long)(g->n / 3) * g->n + g->n / 2] += (1.0 - 2.0 * t * t) * exp(-t * t);
}

void rotate(struct grid *g) {
    double *oldest = g->past;
    g->past = g->now;
    g->now = g->next;
    g->next = oldest;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 700, steps = argc > 2 ? atoi(argv[2]) : 300;
    struct grid g;
    if (n < 50 || steps < 1) {
        fprintf(stderr, "usage: wave [points a side, 50 or more] [steps]\n");
        return 2;
    }
    if (grid_init(&g, n)) {
        fprintf(stderr, "wave: out of memory\n");
        return 1;
    }
    for (int step = 0; step < steps; step++) {
        source(&g, step);
        propagate(&g);
        absorb(&g);
        rotate(&g);
        if (step % 100 == 99) printf("step %d: energy %.12e\n", step + 1, energy(&g));
    }
    printf("final energy %.17g\n", energy(&g));
    grid_free(&g);
    return 0;
}
