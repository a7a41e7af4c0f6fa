// Variables that the source leaves undefined where nobody reads them: what a region gives back is the same each time.
//@ flags: -O0 ; -O3 -march=native
//@ codelets: 1
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static int search(const int *values, int n, int wanted, int *where, double *weight) {
    int best, steps, found = 0;
    double share;
    for (int i = 0; i < n; i++) {
        if (values[i] == -1)
            break;
        if (values[i] > wanted) {
            if (!found || values[i] < values[best]) {
                best = i;
                share = values[i] * 0.5;
            }
            steps = found ? steps + 1 : 1;
            found = 1;
        }
        if (values[i] == -2)
            exit(3);
    }
    if (found) {
        *where = best + 100 * steps;
        *weight = share;
    }
    return found;
}

int main(void) {
    static int values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = (i * 37) % 211;
    int where = 0, sum = 0;
    double weight = 0;
    // The first search finds nothing.
    for (int wanted = 300; wanted > 100; wanted -= 50)
        sum += search(values, 1000, wanted, &where, &weight);
    printf("%d %d %g\n", sum, where, weight);
}
