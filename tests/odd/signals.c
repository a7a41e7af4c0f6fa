// Signals that the program raises and handles in a loop.
//@ vary: N 5 40
//@ pick: FLAGS 0 | SA_RESTART | SA_NODEFER
//@ allowed: outside state
//@ allowed: signal
#include <signal.h>
static volatile sig_atomic_t f@_seen;
static void f@_handle(int number) { f@_seen += number; }
word f@(word x) {
  struct sigaction action = {.sa_handler = f@_handle, .sa_flags = $FLAGS}, old;
  sigaction(SIGUSR1, &action, &old);
  for (int i = 0; i < $N; i++) {
    if (i % 4 == 1) raise(SIGUSR1);
    x = mix(x, f@_seen);
  }
  sigaction(SIGUSR1, &old, 0);
  return x;
}
