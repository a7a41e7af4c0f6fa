// Static variables that are called as compilers call variables of the OpenMP runtime: they are the program's.
//@ regions: 3
//@ codelets: 3
//@ flags: -O0 ; -O3
#include <stdio.h>

static double seen[8];
static long met;

static double smooth(int n) {
    static double cache = 1.5;
    for (int i = 0; i < n; i++) {
        cache = cache * 0.5 + i;
        seen[i & 7] += cache;
    }
    return cache;
}
static long kept(int n) {
    static long table[32], *cache;
    if (!cache)
        cache = table + n % 16;
    for (int i = 0; i < n; i++)
        cache[i & 15] += i * n;
    return cache[3];
}
// In the assembler's names; the runtime's locks are of this size.
static long lock[4] __asm__(".gomp_critical_user_lock.var") = {3, 4, 5, 6};
static long locked(int n) {
    for (int i = 0; i < n; i++) {
        lock[i & 3] = lock[i & 3] * 3 + i;
        met += lock[i & 3];
    }
    return lock[2];
}

int main(void) {
    printf("%g %ld %ld %g %ld\n", smooth(20), kept(20), locked(20), seen[3], met);
}
