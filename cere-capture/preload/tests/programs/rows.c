/* A loop that allocates rows, and loops on them. With an argument that names what becomes of the rows: `keep` them for the
   later loops; `give` them back before these, which have rows of their own; `inside`, give them back within the loop; `show`
   how far they lie apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 200, BYTES = 528 };

char *rows[ROWS];

static void take(void) {
    for (int r = 0; r < ROWS; r++)
        if (!(rows[r] = malloc(BYTES))) abort();
}

static void give(void) {
    for (int r = 0; r < ROWS; r++) free(rows[r]);
}

__attribute__((noinline)) static void allocate(int keep) {
    for (int time = 0; time < 1 + !keep; time++) {
        take();
        if (!keep) give();
    }
}

__attribute__((noinline)) static void add(char x) {
    for (int r = 0; r < ROWS; r++)
        for (int at = 0; at < BYTES; at++) rows[r][at] = x + r;
}

int main(int count, char **arguments) {
    int keep = strcmp(arguments[count - 1], "inside") != 0;
    allocate(keep);
    if (!strcmp(arguments[count - 1], "give")) give(), keep = 0;
    if (!keep) take();
    add(1);
    add(2);
    if (!strcmp(arguments[count - 1], "show"))
        for (int r = 1; r < ROWS; r++) printf("%ld\n", (long)(rows[r] - rows[r - 1]));
    printf("%d\n", rows[7][9]);
    give();
    return 0;
}
