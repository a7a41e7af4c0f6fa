#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Text with the statistics of a log file: words of a small vocabulary, numbers, repeated lines.
static size_t make_input(char *out, size_t size) {
    static const char *words[] = {"error", "warning", "connection", "from", "host", "closed", "opened", "user", "request",
                                  "took", "ms", "status", "GET", "/index.html", "cache", "miss", "hit", "retry"};
    unsigned seed = 42;
    size_t at = 0;
    while (at + 128 < size) {
        at += (size_t)sprintf(out + at, "2026-11-%02u %02u:%02u ", seed % 28 + 1, (seed >> 8) % 24, (seed >> 16) % 60);
        for (int i = 0; i < 6; i++) {
            seed = seed * 1664525u + 1013904223u;
            at += (size_t)sprintf(out + at, "%s ", words[(seed >> 16) % 18]);
        }
        at += (size_t)sprintf(out + at, "%u\n", (seed >> 9) % 5000);
    }
    return at;
}

static unsigned long checksum(const void *data, size_t n) {
    const unsigned char *bytes = data;
    unsigned long sum = 1469598103934665603u;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}
