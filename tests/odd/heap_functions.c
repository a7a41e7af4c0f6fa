// Functions of the program and of libc and libm in a table in the heap.
//@ vary: N 100 900
struct f@_table {
  void *(*copy)(void *, const void *, size_t);
  void *(*fill)(void *, int, size_t);
  double (*first)(double), (*second)(double);
  word (*own)(word, int);
};
static word f@_own(word a, int b) { return a * 5 + b; }
static word f@_other(word a, int b) { return (a ^ a >> 7) - b; }
word f@(word x) {
  struct f@_table *t = malloc(sizeof *t);
  *t = (struct f@_table){memcpy, memset, floor, fabs, x & 1 ? f@_own : f@_other};
  char from[96], to[96];
  t->fill(from, (int)(x & 127), sizeof from);
  word sum = x;
  for (int i = 0; i < $N; i++) {
    from[i % 96] = (char)i;
    t->copy(to, from, 1 + i % 96);
    sum = mix(t->own(sum, to[i % (1 + i % 96)]), bits(t->first(i * 0.37) + t->second(-i)));
    if (i % 50 == 0) t->own = t->own == f@_own ? f@_other : f@_own;
  }
  free(t);
  return sum;
}
