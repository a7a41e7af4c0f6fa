// Regions on stacks of coroutines amid data: in one block of malloc, and in .bss. What lies below such a stack pointer may be data.
//@ capture: smooth@*
//@ invocation: 1,2
//@ codelets: 2
//@ flags: -O0 ; -O3 -march=native
//@ under: build ~ smooth@* ~ partly ~ with 99.9
//@ under: -O0 ~ smooth@* ~ partly ~ with 99.9
//@ under: -O3 -march=native ~ smooth@* ~ partly ~ with 99.9
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { CELLS = 40000 };
struct place {
    double before[CELLS];
    char stack[256 << 10];
    double after[CELLS];
};
static struct place fixed;
static ucontext_t outside, inside;
static struct place *volatile current;

__attribute__((noinline)) static double smooth(struct place *p) {
    double sum = 0;
    for (int i = 1; i < CELLS - 1; i++) {
        p->before[i] = 0.5 * (p->before[i - 1] + p->before[i + 1]) + i;
        p->after[i] += p->before[i] * 0.25;
        sum += p->after[i];
    }
    return sum;
}

static double result;
static void body(void) { result += smooth(current); }

static void run(struct place *p) {
    for (int i = 0; i < CELLS; i++) {
        p->before[i] = i * 0.5;
        p->after[i] = i;
    }
    current = p;
    getcontext(&inside);
    inside.uc_stack.ss_sp = p->stack;
    inside.uc_stack.ss_size = sizeof p->stack;
    inside.uc_link = &outside;
    makecontext(&inside, body, 0);
    swapcontext(&outside, &inside);
}

int main(void) {
    struct place *block = malloc(sizeof *block);
    run(block);
    run(&fixed);
    printf("%.17g\n", result);
    free(block);
    return 0;
}
