// Stands for a library of messages: another unit does not know what its functions do.
#include <unistd.h>

static int way[2] = {-1, -1};
static double last;

double exchange(double value) {
    if (way[0] < 0 && pipe(way))
        return -1;
    if (write(way[1], &value, sizeof value) != sizeof value || read(way[0], &value, sizeof value) != sizeof value)
        return -1;
    return value;
}

double remember(double value) {
    double before = last;
    last = value;
    return before;
}
