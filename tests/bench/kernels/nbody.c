// All pairs of bodies, a structure each.
#include <math.h>
#include <stdio.h>
struct body {
    double x, y, z, vx, vy, vz, mass;
};
static struct body bodies[400];

static void advance(double dt) {
    for (int i = 0; i < 400; i++)
        for (int j = 0; j < 400; j++) {
            double dx = bodies[j].x - bodies[i].x, dy = bodies[j].y - bodies[i].y, dz = bodies[j].z - bodies[i].z;
            double d = dx * dx + dy * dy + dz * dz + 0.01, f = bodies[j].mass / (d * sqrt(d)) * dt;
            bodies[i].vx += dx * f;
            bodies[i].vy += dy * f;
            bodies[i].vz += dz * f;
        }
    for (int i = 0; i < 400; i++) {
        bodies[i].x += bodies[i].vx * dt;
        bodies[i].y += bodies[i].vy * dt;
        bodies[i].z += bodies[i].vz * dt;
    }
}

int main(void) {
    for (int i = 0; i < 400; i++)
        bodies[i] = (struct body){i % 7, i % 11, i % 13, 0, 0, 0, 1 + i % 3};
    for (int t = 0; t < 300; t++)
        advance(0.001);
    printf("%.15g\n", bodies[7].x);
}
