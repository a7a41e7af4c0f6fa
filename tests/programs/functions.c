// Functions as regions: code around loops, no loop at all, recursion of which the outermost call counts, structures as arguments and
// results, a mark in the source, and what cannot be a region as a whole.
//@ functions: smooth
//@ functions: tr*_r
//@ functions: forth
//@ functions: largest
//@ functions: *total
//@ functions: turned
//@ functions: sum_of
//@ functions: dispatch
//@ functions: framed
//@ loop-refused: sum_of@* ~ variable arguments
//@ loop-refused: dispatch@* ~ labels whose address is taken
//@ loop-refused: framed@* ~ frame or return address
//@ loop-refused: dispatch@* ~ computed goto
//@ invocation: 1,2
//@ refused: turned@* ~ longjmp
//@ codelets: 14
//@ flags: -O0 ; -O3 -march=native
//@ under: -O3 -march=native ~ * ~ tolerance ~ of a double's value
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 3000 };
static double field[N];
static int calls;

// Loops with code around them.
double smooth(double *x, int n, double weight) {
    double last = x[0], sum = last * weight, *old = malloc(n * sizeof *old);
    for (int i = 1; i < n - 1; i++) {
        old[i] = x[i];
        x[i] = weight * (last + x[i + 1]) + (1 - 2 * weight) * x[i];
        last = old[i];
    }
    for (int i = 1; i < n - 1; i++)
        sum += x[i] > old[i] ? x[i] : old[i];
    free(old);
    return sum / n;
}

// No loop: calls of itself, and a name that a glob matches.
static unsigned tree_r(unsigned seed, int depth) {
    calls++;
    if (depth == 0)
        return seed * 2654435761u;
    return tree_r(seed * 3 + 1, depth - 1) ^ (tree_r(seed ^ 0x5bd1e995, depth - 1) >> depth);
}

// By way of another one.
static double back(double x, int n);
double forth(double x, int n) {
    calls++;
    return n == 0 ? x : x + 0.5 * back(x * 1.01, n - 1);
}
static __attribute__((noinline)) double back(double x, int n) {
    calls += 2;
    return n == 0 ? x : x - 0.25 * forth(x * 0.99, n - 1);
}

struct pair {
    int index;
    double value;
};
struct big {
    double part[9];
    int from;
};

// A result in registers.
struct pair largest(const double *x, int n) {
    struct pair found = {0, x[0]};
    for (int i = 1; i < n; i++)
        if (x[i] > found.value)
            found = (struct pair){i, x[i]};
    return found;
}

// A result in the caller's memory, an argument that is a copy.
struct big total(struct big start, const double *x, int n) {
    for (int i = start.from; i < n; i++)
        start.part[i % 9] += x[i];
    start.from = n;
    return start;
}
struct big grand_total(struct big start, const double *x, int n) {
    if (n < 8)
        return total(start, x, n);
    struct big half = grand_total(start, x, n / 2);
    half.part[0] += start.part[8];
    return total(half, x, n);
}

// Marked in the source.
__attribute__((annotate("cere.region"))) static unsigned long marked(unsigned long x, int n) {
    for (int i = 0; i < n; i++)
        x = x * 31 + i % 7;
    if (x & 1)
        x = ~x;
    return x;
}

// Calls that return by longjmp.
static jmp_buf away;
int turned(int n, int far) {
    volatile int sum = n;
    for (int i = 0; i < 500; i++)
        sum += i ^ n;
    if (far && n == 0)
        longjmp(away, sum);
    return n == 0 ? sum : sum + turned(n - 1, far);
}

double sum_of(int n, ...) {
    va_list list;
    double sum = 0;
    va_start(list, n);
    for (int i = 0; i < 500; i++)
        sum += i % n;
    for (int i = 0; i < n; i++)
        sum += va_arg(list, double);
    va_end(list);
    return sum;
}

static __attribute__((noinline)) int dispatch(const char *code, int x) {
    static void *const to[] = {&&add, &&twice, &&end};
    goto *to[*code++ - '0'];
add:
    x++;
    goto *to[*code++ - '0'];
twice:
    x *= 2;
    goto *to[*code++ - '0'];
end:
    return x;
}

static __attribute__((noinline)) long framed(long n) {
    long sum = __builtin_return_address(0) != 0;
    for (long i = 0; i < 800; i++)
        sum += i ^ n;
    return sum;
}

int main(void) {
    for (int i = 0; i < N; i++)
        field[i] = (i * 37 % 101) / 10.0;
    for (int t = 0; t < 3; t++)
        printf("%.12g\n", smooth(field, N, 0.2 + t / 100.0));
    printf("%u %u\n", tree_r(1, 11), tree_r(7, 10));
    printf("%d\n", calls);
    printf("%.12g %.12g %.12g\n", forth(1, 300), back(2, 200), forth(3, 301));
    printf("%d\n", calls);
    struct pair pair[] = {largest(field, N), largest(field + 10, N - 10)};
    printf("%d %g %d %g\n", pair[0].index, pair[0].value, pair[1].index, pair[1].value);
    struct big big = {{1, 2, 3}, 0};
    big = grand_total(big, field, N);
    big.from = 9;
    big = total(big, field, N);
    big = total(big, field, N - 1);
    printf("%.12g %.12g %d\n", big.part[0], big.part[8], big.from);
    printf("%lu %lu\n", marked(3, 2000), marked(4, 3000));
    int far = setjmp(away);
    if (!far)
        turned(4, 1);
    printf("%d\n", far);
    printf("%d %d\n", turned(3, 0), turned(2, 0));
    printf("%g %g\n", sum_of(3, 1.5, 2.5, 3.5), sum_of(2, 1.0, 2.0));
    printf("%d\n", dispatch("0101012", 5));
    printf("%ld\n", framed(12));
    return 0;
}
