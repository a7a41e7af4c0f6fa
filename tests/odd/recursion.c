// Deep recursion, mutual calls, calls that are jumps.
//@ vary: N 5 40
static word f@_odd(word x, int depth);
static word f@_even(word x, int depth) { return depth ? f@_odd(x * 3, depth - 1) : x; }
static word f@_odd(word x, int depth) { return depth ? f@_even(x + depth, depth - 1) : ~x; }
static word f@_tree(word x, int depth) {
  char here[64];
  memset(here, (int)x, sizeof here);
  return depth ? f@_tree(x * 2 + 1, depth - 1) ^ f@_tree(x + here[3], depth - 1) : x;
}
word f@(word x) {
  for (int i = 0; i < $N; i++) x = mix(f@_even(x, 5 + i * 50), f@_tree(x, i % 8));
  return x;
}
