/* A loop that calls its own function: as deep as asked, on a stack that is large enough. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

static volatile long calls;
static long depth;

__attribute__((noinline)) static void descend(long n) {
    calls++;
    for (volatile int i = 0; i < 1; i++)
        if (n > 1) descend(n - 1);
}

static void start(void) { descend(depth); }

int main(int argc, char **argv) {
    static ucontext_t here, there;
    size_t size = 4ul << 30;
    depth = argc > 1 ? atol(argv[1]) : 10;
    getcontext(&there);
    there.uc_stack.ss_sp = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    there.uc_stack.ss_size = size;
    there.uc_link = &here;
    makecontext(&there, start, 0);
    swapcontext(&here, &there);
    printf("%ld\n", calls);
    return 0;
}
