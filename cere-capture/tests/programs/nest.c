// Hand-made regions: outer calls inner three times; longjmp leaves region 2; recursion in region 3.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdint.h>
struct unit { uint64_t magic; char id[32]; uint64_t reserved; } __attribute__((aligned(16)));
struct region { uint64_t magic; void (*volatile hook)(struct region*, unsigned, void*); struct unit *unit; unsigned index, size;
  void *invoke, *outlined; uint64_t scratch, reserved; } __attribute__((aligned(64)));
static struct unit U __attribute__((section("cere_units"), used)) = {0x31494e5545524543ULL, {"0123456789abcdef0123456789abcdef"}, 0};
#define REGION(n, f) static void f(void*); static struct region R##n __attribute__((section("cere_regions"), used)) = \
  {0x3147455245524543ULL, 0, &U, n, 64, f, f, 0, 0}
REGION(0, outer); REGION(1, inner); REGION(2, jumper); REGION(3, recurse);
static void __attribute__((noinline)) probe(struct region *r, void (*f)(void*), void *a) {
  if (r->hook) { void *h = r->hook; (void)h; r->hook(r, 0, a); f(a); if (r->hook) r->hook(r, 1, a); } else f(a);
}
static double data[1 << 16]; static jmp_buf env;
static void inner(void *a) { for (int i = 0; i < 1 << 16; i++) data[i] = data[i] * 0.5 + i; }
static void outer(void *a) { long b[8] = {3}; for (int i = 0; i < b[0]; i++) probe(&R1, inner, b); *(double*)a += data[77]; }
static void jumper(void *a) { longjmp(env, 1); }
static void recurse(void *a) { long n = *(long*)a; if (n > 0) { long b[8] = {n - 1}; probe(&R3, recurse, b); *(long*)a = b[0] + n; } }
int main(int argc, char **argv) {
  double block[8] = {0}; long n[8] = {10};
  for (int i = 0; i < 5; i++) probe(&R0, outer, block);
  if (!setjmp(env)) probe(&R2, jumper, block);
  probe(&R3, recurse, n);
  printf("%.6f %ld\n", block[0], n[0]);
  if (argc > 1) { fflush(stdout); if (!strcmp(argv[1], "crash")) abort(); }
  return 3;
}
