// A variable is copied as a whole though the region set only a part of it: the rest is what earlier calls left on the stack, far
// below the region's frame.
//@ levels: -O0 ; -O2
//@ codelets: 1
#include <stdio.h>
#include <string.h>

struct large {
    long set;
    unsigned char unset[3 * 4096];
};

static struct large kept[4];

__attribute__((noinline)) static void leave(int value) {
    volatile unsigned char left[8 * 4096];
    for (unsigned i = 0; i < sizeof left; i++) left[i] = value + i / 512;
}

__attribute__((noinline)) static void see(struct large *large) { __asm__ volatile("" : : "r"(large) : "memory"); }

__attribute__((noinline)) static void keep(int at) {
    struct large large;
    see(&large);
    large.set = at;
    // Not where frames of calls before had their return addresses.
    memcpy(&kept[at], &large, sizeof large - 512);
}

static void run(void) {
    for (int i = 0; i < 4; i++) keep(i);
}

int main(void) {
    leave(3);
    run();
    unsigned long sum = 0;
    for (unsigned i = 0; i < 4; i++) sum += kept[i].set + (kept[i].unset[2000] == 0);
    printf("%lu\n", sum);
}
