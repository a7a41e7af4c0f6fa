/* The time step of the acoustic wave equation: fourth order in space, second in time. */
#include "wave.h"

static const double c0 = -5.0 / 2.0, c1 = 4.0 / 3.0, c2 = -1.0 / 12.0;

void propagate(struct grid *g) {
    int n = g->n;
    const double *now = g->now, *past = g->past, *speed = g->speed;
    double *next = g->next;
    for (int i = 2; i < n - 2; i++)
        for (int j = 2; j < n - 2; j++) {
            long p = (long)i * n + j;
            double lap = 2.0 * c0 * now[p] + c1 * (now[p - 1] + now[p + 1] + now[p - n] + now[p + n]) +
                         c2 * (now[p - 2] + now[p + 2] + now[p - 2 * n] + now[p + 2 * n]);
            next[p] = 2.0 * now[p] - past[p] + speed[p] * lap;
        }
}

/* A damping layer of 20 points along the four edges. */
void absorb(struct grid *g) {
    const int width = 20;
    int n = g->n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int d = i < j ? i : j;
            if (n - 1 - i < d) d = n - 1 - i;
            if (n - 1 - j < d) d = n - 1 - j;
            if (d >= width) continue;
            double w = 1.0 - 0.0053 * (width - d);
            g->next[(long)i * n + j] *= w;
            g->now[(long)i * n + j] *= w;
        }
}

double energy(const struct grid *g) {
    double sum = 0.0;
    long points = (long)g->n * g->n;
    for (long p = 0; p < points; p++) {
        double v = g->now[p] - g->past[p];
        sum += v * v;
    }
    return sum;
}
