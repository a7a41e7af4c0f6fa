#ifndef WAVE_H
#define WAVE_H

/* A square grid of n x n points, three time levels. */
struct grid {
    int n;
    double *past, *now, *next;
    double *speed; /* squared Courant number of each point */
};

int grid_init(struct grid *g, int n);
void grid_free(struct grid *g);
void source(struct grid *g, int step);
void propagate(struct grid *g);
void absorb(struct grid *g);
void rotate(struct grid *g);
double energy(const struct grid *g);

#endif
