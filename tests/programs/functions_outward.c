// A function that communicates: the loops inside that do not are regions too, and it is split like a loop.
//@ functions: steps
//@ functions: main
//@ refused: steps@functions_outward.c:* ~ calls pipe
//@ refused: main@functions_outward.c:* ~ calls pipe
//@ files: parts/exchange.c
//@ levels: -O2 ; -O3 -g ; -O1 -g
//@ codelets: 2
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>

enum { N = 128 };
static double u[N][N], v[N][N];
double exchange(double), remember(double);

double steps(int n) {
    double sum = 0, c = 1;
    for (int j = 1; j < N - 1; j++)
        for (int i = 1; i < N - 1; i++)
            u[j][i] = (i * 7 + j * n) % 13;
    c = exchange(c);
    for (int j = 1; j < N - 1; j++)
        for (int i = 1; i < N - 1; i++)
            v[j][i] = 0.25 * (u[j][i - 1] + u[j][i + 1] + u[j - 1][i] + u[j + 1][i]) + c;
    for (int j = 1; j < N - 1; j++)
        for (int i = 1; i < N - 1; i++)
            sum += v[j][i];
    return sum;
}

int main(void) {
    double sum = 0;
    for (int n = 1; n < 4; n++)
        sum += steps(n);
    printf("%.12g\n", sum);
    return 0;
}
