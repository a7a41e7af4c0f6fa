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

/* What it takes, it keeps: the first time more than the allocator has. */
static void *kept[64];
static __attribute__((noinline)) void take(void) {
    for (int i = 0; i < 64; i++) *(double *)(kept[i] = malloc(4000)) = i;
}

/* What it takes, it gives back. */
static volatile int times = 2;
static __attribute__((noinline)) void borrow(void) {
    for (int r = 0; r < times; r++) {
        for (int i = 0; i < 64; i++) *(double *)(kept[i] = malloc(4000)) = i;
        for (int i = 0; i < 64; i++) free(kept[i]);
    }
}

int main(void) {
    take();
    borrow();
    heap = malloc(N * sizeof *heap);
    for (int r = 0; r < 2; r++) {
        fill(r + 1);
        add();
    }
    return sum != 0;
}
