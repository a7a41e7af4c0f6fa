// Stacks of the program's own, by ucontext.
//@ vary: N 5 60
//@ allowed: partly
#include <ucontext.h>
static ucontext_t f@_main, f@_side;
static word f@_value;
static void f@_body(void) {
  word local[40] = {0};
  for (;;) {
    for (int i = 0; i < 40; i++) local[i] = mix(local[(i + 3) % 40], f@_value + i);
    f@_value = local[7];
    swapcontext(&f@_side, &f@_main);
  }
}
word f@(word x) {
  size_t size = 64 * 1024;
  char *stack = malloc(size);
  memset(stack, 0, size);
  getcontext(&f@_side);
  f@_side.uc_stack.ss_sp = stack;
  f@_side.uc_stack.ss_size = size;
  makecontext(&f@_side, f@_body, 0);
  f@_value = x;
  for (int i = 0; i < $N; i++) {
    swapcontext(&f@_main, &f@_side);
    x = mix(x, f@_value);
  }
  free(stack);
  return x;
}
