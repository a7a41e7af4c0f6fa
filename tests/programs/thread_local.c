// Thread-local variables, own and of another file, initialised and not, and errno.
//@ files: parts/thread_local_other.c
//@ regions: 2
//@ codelets: 2
//@ flags: -O0 ; -O3 -march=native
#include <errno.h>
#include <math.h>
#include <stdio.h>

static _Thread_local long own[32] = {1, 2, 3};
static _Thread_local long count;
extern _Thread_local double shared;
void bump(int n);

int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < 1000 * argc; i++) {
        own[i & 31] += i;
        count += own[(i + 7) & 31];
        shared = shared * 0.5 + count % 17;
        if (i % 100 == 0)
            errno = i;
    }
    bump(500);
    printf("%ld %ld %.17g %d\n", own[3], count, shared, errno);
}
