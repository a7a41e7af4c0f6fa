// Integers and bit patterns that differ are no rounding, whatever they look like as floating point; floats and doubles
// that differ by rounding are, wherever they lie.
//@ levels: -O0 -g ; -O2
//@ codelets: 5
//@ flags: -O3 -ffast-math -march=x86-64-v3
//@ under: build ~ stamped@* ~ different ~ words differ
//@ under: build ~ signs@* ~ different ~ words differ
//@ under: -O3 -ffast-math -march=x86-64-v3 ~ stamped@* ~ different ~ words differ
//@ under: -O3 -ffast-math -march=x86-64-v3 ~ signs@* ~ different ~ words differ
//@ under: -O3 -ffast-math -march=x86-64-v3 ~ singles@* ~ tolerance ~ of a float's value
//@ under: -O3 -ffast-math -march=x86-64-v3 ~ doubles@* ~ tolerance ~ of a double's value
//@ under: -O3 -ffast-math -march=x86-64-v3 ~ mixed@* ~ tolerance ~ floating-point words differ
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static long home;
static int *out;
static long words[64];
static double *in, *sums;
static float *small;
struct pair {
    float value;
    int count;
};
static struct pair *pairs;

// A replay has a thread control block of its own.
static long block(void) {
    long at;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(at));
    return at;
}

// Reads as doubles of 1e-21 that differ by 1e-15 of their value.
__attribute__((noinline)) static void stamped(int n) {
    for (int i = 0; i < n; i++)
        out[i] = i == 70 ? 1000000000 + (block() == home ? 1 : 90) : 1000000000 + i % 7;
}

// Reads as zeros of both signs.
__attribute__((noinline)) static void signs(int n) {
    for (int i = 0; i < n; i++)
        words[i] = i == 7 ? (block() == home ? 0 : LONG_MIN) : i;
}

__attribute__((noinline)) static void doubles(int n) {
    for (int i = 0; i < n; i++) {
        double s = 0;
        for (int k = 0; k < 300; k++)
            s += in[k] * in[(k * 7 + i) & 511] + 1 / in[k];
        sums[i] = s;
    }
}

__attribute__((noinline)) static void singles(int n) {
    for (int i = 0; i < n; i++) {
        float s = 0;
        for (int k = 0; k < 300; k++)
            s += (float)in[k] * (float)in[(k * 5 + i) & 511] + 1.0f / (float)in[k];
        small[i] = s;
    }
}

__attribute__((noinline)) static float mixed(int n) {
    float all = 0;
    for (int i = 0; i < n; i++) {
        float s = 0;
        for (int k = 0; k < 300; k++)
            s += (float)in[k] * (float)in[(k * 3 + i) & 511];
        pairs[i] = (struct pair){s, i};
        all += s / 3;
    }
    return all;
}

int main(void) {
    home = block();
    out = malloc(4096 * sizeof *out);
    in = malloc(512 * sizeof *in);
    sums = malloc(64 * sizeof *sums);
    small = malloc(64 * sizeof *small);
    pairs = malloc(64 * sizeof *pairs);
    for (int i = 0; i < 512; i++)
        in[i] = 1 + 1.0 / (3 + i % 37);
    stamped(4096);
    signs(64);
    doubles(64);
    singles(64);
    float all = mixed(64);
    printf("%d %ld %g %g %g %g\n", out[5], words[5], sums[5], small[5], pairs[5].value, all);
    return 0;
}
