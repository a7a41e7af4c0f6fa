// malloc, calloc, realloc, free, aligned_alloc and strdup inside the region, of memory from before it, inside it and after it.
//@ codelets: 3
//@ flags: -O0 ; -O3 -march=native
//@ under: -O3 -march=native ~ main@* ~ different ~ first at [region heap]
//@ under: -O0 ~ main@* ~ different ~ first at [region heap]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 200
static char *texts[N];
static long *vectors[N];

int main(void) {
    for (int i = 0; i < N; i++) {
        vectors[i] = malloc(sizeof(long) * (size_t)(i + 1));
        for (int j = 0; j <= i; j++)
            vectors[i][j] = i * j;
    }
    long sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            size_t n = (size_t)(i + 1);
            // Grows memory that was allocated before, and frees some of it.
            vectors[i] = realloc(vectors[i], sizeof(long) * n * 4);
            for (size_t j = n; j < 4 * n; j++)
                vectors[i][j] = (long)j;
            sum += vectors[i][3 * n];
            if (i % 3 == round) {
                free(vectors[i]);
                vectors[i] = calloc(4 * n, sizeof(long));
            }
            free(texts[i]);
            char text[64];
            snprintf(text, sizeof text, "text %d of round %d", i, round);
            texts[i] = strdup(text);
            sum += (long)strlen(texts[i]);
            void *aligned = aligned_alloc(256, 1024);
            sum += (long)((uintptr_t)aligned % 256);
            memset(aligned, i, 1024);
            free(aligned);
        }
    }
    for (int i = 0; i < N; i++) {
        sum += texts[i][5] + vectors[i][0];
        free(texts[i]);
        free(vectors[i]);
    }
    printf("%ld\n", sum);
}
