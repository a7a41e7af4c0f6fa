// Live-ins of every shape: structs by value, long double, vectors, 128-bit integers, _Bool, complex numbers, over-aligned structs.
//@ codelets: 6
//@ flags: -O0 ; -O3 -march=native
//@ under: -O3 -march=native ~ vectors@* ~ tolerance ~ of a float's value
#include <complex.h>
#include <stdbool.h>
#include <stdio.h>

typedef float v8 __attribute__((vector_size(32)));
struct small {
    int a;
    double b;
};
struct large {
    long v[9];
};
struct aligned {
    _Alignas(64) double v[4];
};

static __attribute__((noinline)) double structs(struct small s, struct large l, struct aligned w, int n) {
    for (int i = 0; i < n; i++) {
        s.b += s.a * 0.5;
        l.v[i % 9] += i;
        w.v[i % 4] += s.b;
    }
    return s.b + l.v[4] + w.v[2];
}
static __attribute__((noinline)) long double quad(long double x, int n) {
    for (int i = 1; i < n; i++)
        x = x * 1.000001L + 1.0L / i;
    return x;
}
static __attribute__((noinline)) v8 vectors(v8 x, v8 y, int n) {
    for (int i = 0; i < n; i++)
        x = x * y + (v8){1, 2, 3, 4, 5, 6, 7, 8};
    return x;
}
static __attribute__((noinline)) unsigned __int128 wide(unsigned __int128 x, int n) {
    for (int i = 0; i < n; i++)
        x = x * 6364136223846793005u + (unsigned __int128)i;
    return x;
}
static __attribute__((noinline)) bool flags(bool odd, signed char c, int n) {
    for (int i = 0; i < n; i++) {
        odd ^= (c & 1) != 0;
        c = (signed char)(c * 3 + 1);
    }
    return odd;
}
static __attribute__((noinline)) double complex rotate(double complex z, float f, int n) {
    for (int i = 0; i < n; i++)
        z = z * (0.8 + 0.6 * I) + f;
    return z;
}

int main(int argc, char **argv) {
    (void)argv;
    int n = 1000 * argc;
    double s = structs((struct small){argc, 2.5}, (struct large){{argc, 2, 3}}, (struct aligned){{1, 2}}, n);
    long double q = quad(argc, n);
    v8 v = vectors((v8){1, 1, 1, 1}, (v8){0.5f, 0.25f, 0.5f, 0.75f, 0.1f, 0.2f, 0.3f, 0.4f}, n);
    unsigned __int128 w = wide((unsigned __int128)argc << 70, n);
    bool f = flags(argc > 1, (signed char)argc, n);
    double complex z = rotate(argc, 0.25f, n);
    printf("%.17g %.20Lg %.9g %.9g %llx%016llx %d %.17g %.17g\n", s, q, v[0], v[7], (unsigned long long)(w >> 64),
           (unsigned long long)w, f, creal(z), cimag(z));
}
