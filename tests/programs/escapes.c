// Stack variables that only a loop names, whose addresses it leaves behind: they live as long as their function.
//@ codelets: 5
#include <stdio.h>
#include <string.h>

struct node {
    struct node *next;
    int v;
} *head;

static int *kept;
static long word;

__attribute__((noinline)) static void keep(int *p) { kept = p; }

__attribute__((noinline)) static void clobber(void) {
    volatile char x[8192];
    memset((void *)x, 7, sizeof x);
}

__attribute__((noinline, pure)) static int sum(void) {
    int s = 0;
    for (struct node *p = head; p; p = p->next)
        s += p->v;
    return s;
}

__attribute__((noinline)) static int stored(int n) {
    struct node pool[16];
    head = 0;
    for (int i = 0; i < n; i++) {
        pool[i].v = i * i;
        pool[i].next = head;
        head = &pool[i];
    }
    clobber();
    return sum();
}

// Nothing behind the loop has a side effect.
__attribute__((noinline)) static int read_only(int n) {
    struct node pool[16];
    head = 0;
    for (int i = 0; i < n; i++) {
        pool[i].v = i * i;
        pool[i].next = head;
        head = &pool[i];
    }
    return sum();
}

__attribute__((noinline)) static int passed(int n) {
    int buffer[64];
    for (int i = 0; i < n; i++) {
        buffer[i] = i * i;
        keep(&buffer[i]);
    }
    clobber();
    return *kept;
}

__attribute__((noinline)) static int as_number(int n) {
    int buffer[64];
    for (int i = 0; i < n; i++) {
        buffer[i] = i + 3;
        word = (long)&buffer[i] ^ 1;
    }
    clobber();
    return *(int *)(word ^ 1);
}

__attribute__((noinline)) static int result(int n) {
    int buffer[64], *last = 0;
    for (int i = 0; i < n; i++) {
        buffer[i] = i + 7;
        last = &buffer[i];
    }
    clobber();
    return *last;
}

int main(int argc, char **argv) {
    (void)argv;
    printf("%d %d %d %d %d\n", stored(10 + argc), read_only(9 + argc), passed(8 + argc), as_number(7 + argc),
           result(6 + argc));
    return 0;
}
