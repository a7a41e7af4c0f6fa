/* Many short invocations of one loop, then a few of another that takes milliseconds. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static unsigned long step(unsigned long x, int n) {
  for (int i = 0; i < n; i++)
    x = x * 6364136223846793005u + 1442695040888963407u;
  return x;
}

__attribute__((noinline)) static unsigned long slow(unsigned long x, int n) {
  for (int i = 0; i < n; i++)
    x = (x ^ x >> 7) * 6364136223846793005u;
  return x;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 1;
  unsigned long x = 1;
  for (int i = atoi(argv[1]); i > 0; i--)
    x = step(x, 5 + i % 4);
  for (int i = atoi(argv[2]); i > 0; i--)
    x = slow(x, 1000000);
  printf("%lx\n", x);
  return 0;
}
