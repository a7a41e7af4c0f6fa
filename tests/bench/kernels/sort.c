// Quicksort with insertion sort of short parts: recursion and tiny loops.
#include <stdio.h>
#include <stdlib.h>

static void insertion(int *a, int n) {
    for (int i = 1; i < n; i++) {
        int x = a[i], j = i;
        for (; j > 0 && a[j - 1] > x; j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
}
static void quick(int *a, int n) {
    while (n > 24) {
        int pivot = a[n / 2], i = 0, j = n - 1;
        for (;;) {
            while (a[i] < pivot)
                i++;
            while (a[j] > pivot)
                j--;
            if (i >= j)
                break;
            int t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
        quick(a + i, n - i);
        n = i;
    }
    insertion(a, n);
}

int main(void) {
    int n = 2000000, *a = malloc(sizeof(int) * (size_t)n);
    unsigned seed = 5;
    unsigned long sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            a[i] = (int)(seed >> 4);
        }
        quick(a, n);
        for (int i = 0; i < n; i += 1000)
            sum = sum * 31 + (unsigned)a[i];
    }
    printf("%lu\n", sum);
}
