/* Touches pages in a given order between two regions: `pages r0 w1 ...`; `x` enters the region `between`; `t5` takes
 * 5 milliseconds, each with a page of its own and the last of the area. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGES 512

static volatile char area[PAGES][4096] __attribute__((aligned(4096)));
static volatile char passed[PAGES][4096] __attribute__((aligned(4096)));
static long sum;

__attribute__((noinline)) static void begin(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

__attribute__((noinline)) static void between(int n) {
    for (int i = 0; i < n; i++) sum += area[i][0];
}

__attribute__((noinline)) static void wanted(int n) {
    for (int i = 0; i < n; i++) sum += area[i][0] + i;
}

static void take(int milliseconds) {
    for (int i = 0; i < milliseconds; i++) {
        struct timespec from, now;
        clock_gettime(CLOCK_MONOTONIC, &from);
        do clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 1000000);
        sum += area[PAGES - 1][0];
        passed[i * 7 % PAGES][0] = 1;
    }
}

int main(int argc, char **argv) {
    static struct {
        char kind;
        int page;
    } list[4096];
    for (int i = 1; i < argc; i++) {
        list[i].kind = argv[i][0];
        list[i].page = atoi(argv[i] + 1);
    }
    begin(3);
    for (int i = 1; i < argc; i++) {
        if (list[i].kind == 'r') sum += area[list[i].page][0];
        if (list[i].kind == 'w') area[list[i].page][8] = 1;
        if (list[i].kind == 't') take(list[i].page);
        if (list[i].kind == 'x') between(list[i].page);
    }
    wanted(2);
    begin(4);
    wanted(3);
    printf("%ld\n", sum);
    return 0;
}
