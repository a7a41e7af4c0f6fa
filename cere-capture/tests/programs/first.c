/* Memory that is touched for the first time, and again. */
#include <stdlib.h>

#define N (64 * 512)

double zeros[N];
double *heap;
double sum;

static __attribute__((noinline)) void fill(double x) {
    for (int i = 0; i < N; i++) heap[i] = x * i;
}

static __attribute__((noinline)) void add(void) {
    for (int i = 0; i < N; i += 512) sum += zeros[i];
}

int main(void) {
    heap = malloc(N * sizeof *heap);
    for (int r = 0; r < 2; r++) {
        fill(r + 1);
        add();
    }
    return sum != 0;
}
