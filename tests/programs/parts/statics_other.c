static long total = 1000;
static long table[64];
static __attribute__((noinline)) long step(long x) { return x * 5 - total; }

long other(int n) {
    for (int i = 0; i < n; i++) {
        total += step(i) & 0x7f;
        table[i & 63] += total;
    }
    return total - table[7];
}
