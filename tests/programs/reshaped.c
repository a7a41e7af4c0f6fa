// Static variables that -O2 keeps in another form: `limit`, which is 0 or 4096, and `sign`, as one bit each, the latter in as many
// bytes under the same name, and `origin` in parts, once a loop is unrolled. So are the bounds of `block`, which take more than ten
// rows, and of which one is called as the rows are. A replay under flags that leave them as written has their values all the same.
//@ levels: -O2 ; -O3 -g
//@ capture: *
//@ invocation: 1,2
//@ flags: -O0 ; -O1 ; -O3 -march=native
#include <stdio.h>

static int limit;
static signed char sign = 7;
static int origin[3];
static int rows[3], columns[3], planes[3], row_ends[3], column_ends[3], bytes[3];
static long field[4100];

static void set_up(void) {
    limit = 4096;
    sign = -3;
    for (int i = 0; i < 3; i++)
        origin[i] = i + 1;
}

static long __attribute__((noinline)) sum(void) {
    long total = 0;
    for (int i = 0; i < limit; i++)
        total += field[i + origin[0]] * origin[2] * sign;
    return total;
}

static void bound(void) {
    for (int i = 0; i < 3; i++) {
        rows[i] = columns[i] = planes[i] = 1;
        row_ends[i] = 12;
        column_ends[i] = 15;
        bytes[i] = 17;
    }
}

static long __attribute__((noinline)) block(int by) {
    long total = by + rows[2] * columns[0];
    for (int i = rows[0]; i < row_ends[1]; i++)
        for (int k = columns[1]; k < column_ends[2]; k++)
            for (int l = planes[2]; l < bytes[0]; l++)
                total = total * 3 + field[(i * 15 + k) * 17 + l];
    return total;
}

int main(void) {
    for (int i = 0; i < 4100; i++)
        field[i] = i * i % 977;
    long before = sum();
    set_up();
    long none = block(5);
    bound();
    printf("%ld %ld %ld %ld\n", before, sum(), none, block(7));
    return 0;
}
