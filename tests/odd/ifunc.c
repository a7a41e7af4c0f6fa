// A function that a resolver chooses.
//@ vary: N 100 900
static word f@_one(word a) { return a * 3 + 1; }
static word f@_two(word a) { return (a ^ 0x55) * 7; }
__attribute__((ifunc("f@_resolve_it"))) word f@_x_chosen(word);
__attribute__((visibility("hidden"), used)) void *f@_resolve_it(void) { return sizeof(long) == 8 ? (void *)f@_one : (void *)f@_two; }
word f@(word x) {
  word (*kept)(word) = f@_x_chosen;
  for (int i = 0; i < $N; i++) x = mix(f@_x_chosen(x), kept(x + i));
  return x;
}
