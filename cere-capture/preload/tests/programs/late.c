/* A region whose teams grow: the runtime starts threads inside. */
#include <omp.h>
#include <stdio.h>

enum { PAGES = 96, SIZE = 4096 };
__attribute__((aligned(SIZE))) static volatile unsigned char area[PAGES * SIZE];

__attribute__((noinline)) static long team(int threads) {
  long total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  for (int i = omp_get_thread_num(); i < PAGES; i += threads)
    total += ++area[i * SIZE];
  return total;
}

__attribute__((noinline)) static long around(int most) {
  long total = 0;
  for (int threads = 1; threads <= most; threads++)
    total += team(threads);
  return total;
}

__attribute__((noinline)) static long last(void) {
  long total = 0;
  for (int i = 0; i < PAGES; i++)
    total += area[i * SIZE];
  return total;
}

int main(void) {
  long total = around(4);
  printf("%ld %ld\n", total, last());
  return 0;
}
