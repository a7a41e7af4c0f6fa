/* What the program is told of its stack and of its memory: `told WHAT`. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static volatile long sum;

__attribute__((noinline)) static void add(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

/* The size, rounded: the environment takes some pages of it. */
static void tell(pthread_t thread) {
    pthread_attr_t attributes;
    void *start;
    size_t size;
    char here;
    if (pthread_getattr_np(thread, &attributes) || pthread_attr_getstack(&attributes, &start, &size)) exit(3);
    int inside = (char *)start < &here && &here < (char *)start + size;
    printf("%zu MiB, %d\n", (size + (1 << 19)) >> 20, inside);
    pthread_attr_destroy(&attributes);
}

static void *other(void *unused) {
    tell(pthread_self());
    return unused;
}

/* Mappings below the heap, by their rights: those of the program's own image. */
static void maps(void) {
    char line[4096];
    FILE *file = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, file)) {
        char rights[5] = "", path[4096] = "";
        sscanf(line, "%*s %4s %*s %*s %*s %4095s", rights, path);
        if (strstr(path, "/program")) puts(rights);
        /* A region in the midst of it. */
        add(1);
    }
    fclose(file);
}

int main(int argc, char **argv) {
    add(10);
    if (argc > 1 && !strcmp(argv[1], "stack")) {
        struct rlimit limit;
        pthread_t thread;
        tell(pthread_self());
        getrlimit(RLIMIT_STACK, &limit);
        printf("%lu\n", (unsigned long)limit.rlim_cur);
        pthread_create(&thread, NULL, other, NULL);
        pthread_join(thread, NULL);
        limit.rlim_cur = 32 << 20;
        setrlimit(RLIMIT_STACK, &limit);
        getrlimit(RLIMIT_STACK, &limit);
        printf("%lu\n", (unsigned long)limit.rlim_cur);
        tell(pthread_self());
    } else {
        maps();
    }
    for (int i = 0; i < 200; i++) add(10);
    printf("%ld\n", sum);
    return 0;
}
