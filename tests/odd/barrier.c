// A handler of SIGSEGV that opens pages, as a garbage collector's write barrier does.
//@ vary: N 20 200
//@ allowed: signal
#include <signal.h>
#include <sys/mman.h>
static char *f@_area;
static volatile int f@_faults;
static void f@_open(int number, siginfo_t *info, void *context) {
  char *page = (char *)((uintptr_t)info->si_addr & -4096ul);
  if (page < f@_area || page >= f@_area + 8 * 4096) _exit(9);
  f@_faults++;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
word f@(word x) {
  struct sigaction action = {.sa_sigaction = f@_open, .sa_flags = SA_SIGINFO}, old;
  sigaction(SIGSEGV, &action, &old);
  f@_area = mmap(0, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(f@_area, (int)(x & 63), 8 * 4096);
  mprotect(f@_area, 8 * 4096, PROT_READ);
  f@_faults = 0;
  for (int i = 0; i < $N; i++) f@_area[(i * 701) % (8 * 4096)] += (char)(x + i);
  for (int i = 0; i < 8 * 4096; i += 3) x = mix(x, f@_area[i]);
  x = mix(x, f@_faults);
  munmap(f@_area, 8 * 4096);
  sigaction(SIGSEGV, &old, 0);
  return x;
}
