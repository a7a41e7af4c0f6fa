// Loops within loops that may communicate, and what a run of the inner one leaves to the next one.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double u[40][40];

// What only the inner loop names, and finds again.
static double kept(int n, int m) {
    double own[64], sum = 0;
    unsigned state[4];
    char text[32];
    for (int t = 0; t < n; t++) {
        printf("%d\n", t);
        for (int i = 0; i < m; i++) {
            own[i] = t ? 0.5 * own[i] + i : i;
            state[i & 3] = t || i > 3 ? state[i & 3] * 1664525u + 1013904223u : 7;
            sum += own[i] + (state[i & 3] >> 24);
        }
        for (int i = 0; i < m; i++)
            text[i % 31] = t ? (char)(text[i % 31] ^ i) : 'a';
        for (int i = 0; i < m; i++) {
            double fresh[4] = {i, t};
            for (int k = 0; k < 4; k++)
                sum += fresh[k] + text[i % 31 % 4];
        }
    }
    return sum;
}

// Its address is left somewhere.
static int escaping(int n) {
    int *last = NULL, sum = 0;
    int cell[8] = {0};
    for (int t = 0; t < n; t++) {
        puts("step");
        for (int i = 0; i < 100; i++) {
            cell[i & 7] += i + t;
            last = &cell[i & 3];
        }
        sum += *last;
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < 50; i++)
                sum += *last + cell[(i + j) & 7];
    }
    return sum;
}

// Ways out: to the next step, out of both, out of the function, out of the program.
static int ways(int n, int m, int stop) {
    int found = 0, t;
    for (t = 0; t < n; t++) {
        int stack[m + t];
        memset(stack, 0, sizeof stack);
        printf("ways %d\n", t);
        for (int i = 0; i < m; i++) {
            stack[i] = (i * 7 + t) % 13;
            if (stack[i] == 12 && i > m - 4)
                goto next;
            if (t == stop)
                return found - i;
            if (t + i == 3 * stop)
                goto out;
            found += stack[i];
        }
        found *= 3;
    next:
        found ^= stack[0];
        for (int i = m - 1; i >= 0; i--) {
            switch (stack[i] & 3) {
            case 0:
                continue;
            case 1:
                found++;
                break;
            case 2:
                if (i < 3)
                    goto last;
                break;
            default:
                found += i;
            }
        }
    last:;
    }
out:
    return found + t;
}

static int summed(int n, ...) {
    va_list list;
    int sum = 0;
    for (int t = 0; t < 2; t++) {
        va_start(list, n);
        printf("sum %d\n", t);
        for (int i = 0; i < n; i++)
            sum += va_arg(list, int) * (t + 1);
        va_end(list);
    }
    return sum;
}

static jmp_buf back;
static double jumping(int n) {
    volatile int round = 0;
    double sum = 0;
    if (setjmp(back))
        round = round + 1;
    for (int t = round * 2; t < n; t++) {
        printf("jump %d\n", t);
        for (int j = 0; j < 40; j++)
            for (int i = 0; i < 40; i++) {
                u[j][i] += i * j + t;
                sum += u[j][i];
                if (t == 1 && round == 0 && j == 20 && i == 3)
                    longjmp(back, 1);
            }
    }
    return round ? 1 : sum;
}

static long mixed(int n, const char *words) {
    long sum = 0;
    for (int t = 0; t < n; t++) {
        long part = 0, most = 0;
        printf("mixed %ld\n", sum);
        for (const char *p = words; *p; p++)
            part = part * 31 + *p;
        for (int i = 0; i < 1000 + t; i++) {
            long value = (part >> (i & 31)) & 255;
            most = value > most ? value : most;
            sum += value;
        }
        for (int half = 0; half < 2; half++) {
            printf("half %d\n", half);
            for (int j = half; j < 40; j += 2)
                for (int i = 0; i < 40; i++)
                    sum += (long)u[j][i] % (most + 1);
        }
        do {
            part = part * 6364136223846793005 + 1442695040888963407;
            sum ^= part >> 60;
        } while ((part >> 58 & 31) != 3);
    }
    return sum;
}

int main(void) {
    printf("%.17g\n", kept(4, 60));
    printf("%d\n", escaping(5));
    for (int stop = 3; stop < 9; stop += 2)
        printf("%d\n", ways(8, 20, stop));
    printf("%d\n", summed(4, 1, 20, 300, 4000));
    printf("%.17g\n", jumping(3));
    printf("%ld\n", mixed(3, "some words to hash"));
    return 0;
}
