// Each loop of a region_ function is a region that runs once; what it calls nothing else calls. Cachegrind counts the same
// functions of the program.
#include <string.h>
#define N 200
#define NOINLINE __attribute__((noinline))

static double d[N];
static float f[N];
static int w[N];
static long l[N];
static unsigned char code[N];
static long double wide[N];
static volatile double sink;
static _Thread_local long own;

static NOINLINE long fibonacci(long n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

NOINLINE void region_recursion(void) {
    for (int i = 0; i < 10; i++)
        l[i] = fibonacci(i);
}

// A switch with a jump table.
static NOINLINE long interpret(long a, unsigned op, long x) {
    switch (op) {
    case 0: return a + x;
    case 1: return a * x;
    case 2: return a ^ (x << 3);
    case 3: return a - 7 * x;
    case 4: return a / (x | 1);
    case 5: return a % (x | 3);
    case 6: return x > a ? x : a;
    case 7: return ~a;
    default: return a >> 1;
    }
}

NOINLINE void region_switch(void) {
    long a = 1;
    for (int i = 0; i < N; i++)
        a = interpret(a, code[i] % 10, l[i]);
    l[0] = a;
}

NOINLINE void region_division(void) {
    for (int i = 0; i < N; i++) {
        w[i] = w[i] / (i + 1) + (int)((unsigned)w[i] % (unsigned)(i + 7));
        d[i] = d[i] / (1.5 + i);
        f[i] = f[i] / (0.5f + (float)i) + __builtin_sqrtf(f[i]);
        d[i] += __builtin_sqrt(d[i]);
    }
}

// More values than registers.
NOINLINE void region_spills(void) {
    double a = 1, b = 2, c = 3, e = 4, g = 5, h = 6, p = 7, q = 8, r = 9, s = 10, t = 11, u = 12, v = 13, x = 14, y = 15, z = 16,
           k = 17, m = 18, o = 19;
    for (int i = 0; i < N; i++) {
        double n = d[i];
        a += n * b; b -= n * c; c += n * e; e -= n * g; g += n * h; h -= n * p; p += n * q; q -= n * r; r += n * s;
        s -= n * t; t += n * u; u -= n * v; v += n * x; x -= n * y; y += n * z; z -= n * k; k += n * m; m -= n * o; o += n * a;
    }
    sink = a + b + c + e + g + h + p + q + r + s + t + u + v + x + y + z + k + m + o;
}

NOINLINE void region_spilled_words(void) {
    long a = 1, b = 2, c = 3, e = 4, g = 5, h = 6, p = 7, q = 8, r = 9, s = 10, t = 11, u = 12, v = 13, x = 14, y = 15, z = 16;
    for (int i = 0; i < N; i++) {
        long n = l[i];
        a += n ^ b; b -= n ^ c; c += n ^ e; e -= n ^ g; g += n ^ h; h -= n ^ p; p += n ^ q; q -= n ^ r; r += n ^ s;
        s -= n ^ t; t += n ^ u; u -= n ^ v; v += n ^ x; x -= n ^ y; y += n ^ z; z -= n ^ a;
    }
    l[0] = a + b + c + e + g + h + p + q + r + s + t + u + v + x + y + z;
}

// An argument that a repeated string instruction copies.
struct large { long words[60]; };
static struct large big[4];
static NOINLINE long by_value(struct large s, int i) { return s.words[i % 60] + s.words[59]; }
static NOINLINE long filled(int i) {
    struct large s = {{0}};
    s.words[i % 60] = i;
    return by_value(s, i + 1);
}

NOINLINE void region_strings(void) {
    for (int i = 0; i < N; i++)
        l[i] += by_value(big[i % 4], i) + filled(i);
}

NOINLINE void region_library(void) {
    for (int i = 0; i < 4; i++)
        memcpy(&big[i], l + i, sizeof big[i] + (size_t)(code[i] & 8));
}

static NOINLINE long twice(long x) { return 2 * x; }
static NOINLINE long plus(long x) { return x + 1; }
static NOINLINE long less(long x) { return x - (x >> 2); }
static long (*const volatile table[3])(long) = {twice, plus, less};

NOINLINE void region_pointers(void) {
    for (int i = 0; i < N; i++)
        l[i] = table[i % 3](l[i]);
}

// Integer branches that data decides, conversions, bits, short types.
static NOINLINE int bits(unsigned x) { return __builtin_popcount(x) + __builtin_clz(x | 1) + __builtin_bswap32(x); }

NOINLINE void region_integers(void) {
    for (int i = 0; i < N; i++) {
        if (w[i] & 1)
            w[i] = 3 * w[i] + 1;
        else if (w[i] > 50)
            w[i] >>= 1;
        code[i] += (unsigned char)w[i];
        w[i] ^= bits((unsigned)w[i]);
        l[i] += (long)(((unsigned __int128)(unsigned long)l[i] * 0x9e3779b97f4a7c15u) >> 64);
        l[i] = (l[i] << (i & 31)) | (long)((unsigned long)l[i] >> (64 - (i & 31) & 63));
        f[i] = (float)w[i] + (float)l[i];
        d[i] = f[i] > 3 ? (double)f[i] : (double)(int)d[i];
    }
}

// The x87 unit.
NOINLINE void region_wide(void) {
    for (int i = 1; i < N; i++)
        wide[i] = wide[i - 1] * 0.5L + (long double)d[i] / (3 + i) - wide[i] + (long)(wide[i] * 3);
}

NOINLINE void region_atomics(void) {
    for (int i = 0; i < N; i++) {
        __atomic_fetch_add(&l[i], 3, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&w[i], i, __ATOMIC_SEQ_CST);
        __atomic_exchange_n(&l[i], i, __ATOMIC_SEQ_CST);
        long old = i;
        __atomic_compare_exchange_n(&l[i], &old, 2 * i, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        __atomic_fetch_or(&l[i], 4, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
}

NOINLINE void region_thread(void) {
    for (int i = 0; i < N; i++) {
        own += l[i];
        own ^= 5;
        l[i] = own;
    }
}

NOINLINE void region_matrix(void) {
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++) {
            float sum = 0;
            for (int k = 0; k < 10; k++)
                sum += f[10 * i + k] * f[10 * k + j];
            d[10 * i + j] = sum;
        }
}

int main(void) {
    for (int i = 0; i < N; i++) {
        d[i] = i * 0.25;
        f[i] = (float)i * 0.5f;
        w[i] = i * 77 % 101;
        l[i] = i * 31 % 57;
        code[i] = (unsigned char)(i * 37);
        wide[i] = i;
    }
    region_recursion();
    region_switch();
    region_division();
    region_spills();
    region_spilled_words();
    region_strings();
    region_library();
    region_pointers();
    region_integers();
    region_wide();
    region_atomics();
    region_thread();
    region_matrix();
    return 0;
}
