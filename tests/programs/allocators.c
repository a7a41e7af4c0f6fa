// The allocator behind pointers: a table of functions, a pointer in memory, and code without IR that frees.
//@ build: clang-22 $FLAGS -c -o raw.o $DIR/parts/allocators_raw.c && $CC $FLAGS -c -o main.o $DIR/allocators.c && $CC $FLAGS -o program main.o raw.o
//@ codelets: 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct allocator {
    void *(*take)(size_t);
    void *(*more)(void *, size_t);
    void (*give)(void *);
};
static struct allocator allocator = {malloc, realloc, free};
char *raw_copy(const char *text);
void raw_drop(char *text);

int main(void) {
    long sum = 0;
    char *kept = NULL;
    for (int i = 1; i < 200; i++) {
        char *block = allocator.take((size_t)i);
        memset(block, i, (size_t)i);
        block = allocator.more(block, (size_t)i * 3);
        sum += block[i / 2];
        allocator.give(block);
        char *text = raw_copy("a text of code without IR");
        sum += text[i % 20];
        if (kept)
            raw_drop(kept);
        kept = text;
    }
    printf("%ld %s\n", sum, kept);
}
