/* A program that has its own OpenMP runtime in it, as with -static-openmp. */
#include <stdarg.h>
#include <stdio.h>

typedef void (*task_t)(int *, int *, ...);

void __kmpc_fork_call(void *where, int count, task_t task, ...) {
  int number = 0, bound = 0;
  va_list arguments;
  va_start(arguments, task);
  void *first = count > 0 ? va_arg(arguments, void *) : NULL;
  void *second = count > 1 ? va_arg(arguments, void *) : NULL;
  va_end(arguments);
  (void)where;
  task(&number, &bound, first, second);
}

static long data[1000];

__attribute__((noinline)) static void loop(long n) {
  for (long i = 0; i < n; i++)
    data[i] = data[i] * 3 + i;
}

__attribute__((noinline)) static void team(long n) {
#pragma omp parallel
  data[n] += 1;
}

__attribute__((noinline)) static void around(long n) {
  for (long i = 0; i < n; i++)
    team(i);
}

int main(void) {
  loop(1000);
  team(7);
  around(10);
  long sum = 0;
  for (int i = 0; i < 1000; i++)
    sum = sum * 31 + data[i];
  printf("%lx\n", sum);
  return 0;
}
