// Thread-local variables, with and without an initialiser, in one unit or two.
//@ vary: N 100 900
//@ pick: LOCAL | static
_Thread_local int f@_x_seen = 7;
static _Thread_local word f@_ring[37];
$LOCAL _Thread_local word *f@_last;
word f@_x_step(word);
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    f@_ring[(i * 5) % 37] += x + i;
    f@_last = &f@_ring[i % 37];
    x = mix(x, f@_x_step(*f@_last));
  }
  return mix(x, f@_x_seen);
}
//@ part: unit | library
extern _Thread_local int f@_x_seen;
word f@_x_step(word a) {
  static _Thread_local word calls;
  f@_x_seen += (int)(a & 3);
  return a + ++calls;
}
