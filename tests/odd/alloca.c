// Stack memory of sizes that vary, in the loop's own function and below it.
//@ vary: N 20 300
static word f@_below(word x, int size) {
  word *block = __builtin_alloca(size * sizeof *block);
  for (int i = 0; i < size; i++) block[i] = x * i;
  for (int i = size - 1; i > 0; i--) x = mix(x, block[i] ^ block[i - 1]);
  return x;
}
word f@(word x) {
  int size = 10 + (int)(x % 90);
  char *own = __builtin_alloca(size);
  memset(own, 5, size);
  for (int i = 0; i < $N; i++) x = mix(f@_below(x, 1 + i % 60), own[i % size]++);
  return x;
}
