// Memory from sbrk.
//@ vary: N 3 20
//@ allowed: brk
word f@(word x) {
  char *first = sbrk(0);
  for (int i = 1; i <= $N; i++) {
    char *block = sbrk(64 * i);
    memset(block, (int)(x & 31), 64 * i);
    block[i] += i;
    x = mix(x, block[i] + (word)(block - first) % 64);
  }
  return x;
}
