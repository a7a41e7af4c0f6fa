// Streams that write to memory: opened and closed inside, and opened inside and left open, with the allocator's addresses in them.
#include <stdio.h>
#include <stdlib.h>

static char *text;
static size_t size;
static FILE *stream;

static __attribute__((noinline)) long inside(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        char *own = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&own, &length);
        fprintf(f, "%d %d", i, i * 3);
        fclose(f);
        sum += (long)length + own[0];
        free(own);
    }
    return sum;
}

static __attribute__((noinline)) long opens(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        if (!stream) stream = open_memstream(&text, &size);
        fprintf(stream, "%d %d", i, i * 3);
        fflush(stream);
        sum += (long)size;
    }
    return sum;
}

int main(void) {
    printf("%ld\n", inside(50));
    printf("%ld\n", opens(50));
    fclose(stream);
    free(text);
    return 0;
}
