// setjmp in a function that a loop calls, longjmp from below it.
//@ vary: N 50 400
//@ pick: SET setjmp(place) | _setjmp(place) | sigsetjmp(place, 0)
//@ pick: OUT longjmp | _longjmp | siglongjmp
//@ allowed: setjmp
//@ allowed: longjmp
#include <setjmp.h>
static sigjmp_buf f@_outer;
__attribute__((noinline)) static word f@_deep(jmp_buf place, word x, int depth) {
  if (depth == 0) longjmp(place, 1 + (int)(x & 7));
  return f@_deep(place, x * 3 + 1, depth - 1) + 1;
}
__attribute__((noinline)) static word f@_try(word x, int depth) {
  jmp_buf place;
  volatile word kept = x + 5;
  int how = setjmp(place);
  if (how == 0) return f@_deep(place, x, depth);
  return kept * how;
}
word f@(word x) {
  for (int i = 0; i < $N; i++) x = mix(x, f@_try(x, i % 9));
  return x;
}
