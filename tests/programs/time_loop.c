// Loops inside a loop that may communicate are regions too: they are captured though the loop around them cannot be, and beside it
// where it can be.
//@ files: parts/exchange.c
//@ levels: -O2 ; -O3 -g ; -O1 -g
//@ refused: steps@time_loop.c:21 ~ calls pipe
//@ refused: carried@time_loop.c:39 ~ writ
//@ refused: left@time_loop.c:58 ~ writ
//@ refused: deeper@time_loop.c:83 ~ writ
//@ regions: 13
//@ codelets: 9
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>
#include <string.h>

enum { N = 96 };
static double u[N][N], v[N][N];
double exchange(double), remember(double);

static __attribute__((noinline)) double steps(int n) {
    double sum = 0, c = 1;
    for (int t = 0; t < n; t++) {
        c = exchange(c);
        for (int j = 1; j < N - 1; j++)
            for (int i = 1; i < N - 1; i++)
                v[j][i] = 0.25 * (u[j][i - 1] + u[j][i + 1] + u[j - 1][i] + u[j + 1][i]) + c;
        for (int j = 1; j < N - 1; j++)
            for (int i = 1; i < N - 1; i++) {
                u[j][i] = v[j][i];
                sum += v[j][i];
            }
    }
    return sum;
}

// What a run of the inner loop leaves in a variable of its own is there for the next run.
static __attribute__((noinline)) double carried(int n, int m) {
    double kept[2 * N], sum = 0;
    unsigned state[2];
    for (int t = 0; t < n; t++) {
        double fresh[N];
        sum = exchange(sum);
        for (int i = 0; i < m; i++) {
            kept[i] = t ? 0.5 * kept[i] + i : i;
            state[i & 1] = t || i > 1 ? state[i & 1] * 1664525u + 1013904223u : 7;
            sum += kept[i] + (state[i & 1] >> 24);
        }
        for (int i = 0; i < m; i++) {
            fresh[i % N] = i < N ? sum + i : fresh[i % N] + 1;
            sum += 1e-3 * fresh[i % N];
        }
    }
    return sum;
}

// Ways out of the inner loop that lead on, to the next step of the outer one, and out of both.
static __attribute__((noinline)) int left(int n, int m, int *where) {
    int t, found = 0;
    for (t = 0; t < n; t++) {
        int stack[m + t];
        if (exchange(t) < 0)
            return -1;
        for (int i = 0; i < m; i++) {
            stack[i] = i * t % 257;
            found += stack[i] & 3;
            if (i > 900 && stack[i] == 13)
                goto next;
            if (t == 5 && i == 1200)
                goto out;
            if (t == 7)
                return found;
        }
        found++;
    next:
        where[t] = found + stack[t];
    }
out:
    return found + t;
}

// The middle loop communicates itself: it has no more than the outer one, so only what is inside it is worth a region.
static __attribute__((noinline)) double deeper(int n) {
    double sum = 0;
    for (int t = 0; t < n; t++)
        for (int half = 0; half < 2; half++) {
            sum = exchange(sum);
            for (int j = half; j < N; j += 2)
                for (int i = 0; i < N; i++)
                    sum += u[j][i] * 0.5;
        }
    return sum;
}

// The outer loop can be captured as well, with the probes of those inside.
static __attribute__((noinline)) double both(int n) {
    double sum = 0;
    for (int t = 0; t < n; t++) {
        sum += remember(sum);
        for (int j = 0; j < N; j++) {
            for (int i = 0; i < N; i++)
                sum += v[j][i];
            if (sum < 0)
                printf("negative in %d\n", j);
        }
        for (int i = 0; i < N * N; i++)
            u[i / N][i % N] += sum / (i + 1);
    }
    return sum;
}

int main(void) {
    static int where[16];
    u[3][4] = 1;
    printf("%.15g\n", steps(4));
    printf("%.15g\n", carried(6, 2 * N));
    printf("%d\n", left(10, 2000, where));
    printf("%d\n", where[2]);
    printf("%.15g\n", deeper(3));
    printf("%.15g\n", both(5));
    return 0;
}
