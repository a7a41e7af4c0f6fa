// A chained hash table: short loops that run millions of times.
#include <stdio.h>
#include <stdlib.h>
struct entry {
    struct entry *next;
    unsigned key, count;
};
static struct entry *table[1 << 14];

static struct entry *find(unsigned key) {
    struct entry **slot = &table[(key * 2654435761u) >> 18];
    for (struct entry *e = *slot; e; e = e->next)
        if (e->key == key)
            return e;
    struct entry *e = malloc(sizeof *e);
    *e = (struct entry){*slot, key, 0};
    return *slot = e;
}

int main(void) {
    unsigned seed = 3;
    unsigned long sum = 0;
    for (int i = 0; i < 12000000; i++) {
        seed = seed * 1664525u + 1013904223u;
        sum += ++find(seed >> 17)->count;
    }
    printf("%lu\n", sum);
}
