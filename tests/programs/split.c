// Static variables that optimisers split, shrink, align or remove: a replay under other flags keeps what was captured, takes it
// together from what the captured program has of it, or, where that has nothing, needs nothing of it.
//@ levels: -O0 -g ; -O2 ; -O3 -g
//@ invocation: 1,3
//@ codelets: 9
//@ flags: -O0 ; -O2 ; -O3 -march=x86-64-v3
#include <stdio.h>

static struct {
    long ready;
    double gain;
} state;
static double out[64], table[64];
static int ready, calls, mode = 3;
static double half, quarter, pad[2], accumulators[8], input[512];

__attribute__((noinline)) static void lazy(int n) {
    for (int i = 0; i < n; i++) {
        if (!state.ready) {
            double g = 0;
            for (int k = 1; k < 300; k++)
                g += 1.0 / ((double)k * k);
            state.gain = g;
            state.ready = 1;
        }
        out[i & 63] = state.gain * i;
    }
}

__attribute__((noinline)) static void lazy_flag(int n) {
    for (int i = 0; i < n; i++) {
        if (!ready) {
            for (int k = 0; k < 64; k++)
                table[k] = k * 0.25;
            ready = 1;
        }
        out[i & 63] += table[i & 63];
    }
}

// Nobody reads `calls`, nobody writes `mode`.
__attribute__((noinline)) static void counted(int n) {
    for (int i = 0; i < n; i++) {
        calls++;
        out[i & 63] += mode;
    }
}

// Optimised, both stay in registers.
__attribute__((noinline)) static void temporaries(int n) {
    for (int i = 0; i < n; i++) {
        half = input[i] * 0.5;
        quarter = half * 0.5;
        out[i & 63] += half * quarter;
    }
}

// Vectors of 32 bytes over an array that lies at a multiple of 16.
__attribute__((noinline)) static void aligned(int n) {
    for (int k = 0; k < n; k++)
        for (int j = 0; j < 8; j++)
            accumulators[j] = accumulators[j] * 0.5 + input[k];
}

int main(int argc, char **argv) {
    (void)argv;
    pad[argc & 1] = 1;
    for (int i = 0; i < 512; i++)
        input[i] = i * argc;
    for (int r = 0; r < 4; r++) {
        lazy(64);
        lazy_flag(64);
        counted(64);
        temporaries(64);
        aligned(512);
    }
    double s = pad[0];
    for (int j = 0; j < 8; j++)
        s += accumulators[j];
    printf("%g %g %g %p\n", out[5], out[9], s, argc > 5 ? (void *)pad : 0);
    return 0;
}
