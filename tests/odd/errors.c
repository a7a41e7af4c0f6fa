// errno, its address, and calls that fail.
//@ vary: N 20 200
//@ allowed: outside state
static int *f@_where;
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    f@_where = &errno;
    errno = 0;
    double root = sqrt((double)(i % 3) - 1);
    long number = strtol("99999999999999999999", 0, 10);
    x = mix(x, (word)*f@_where + (root != root) + (word)number);
    if (i % 10 == 0) x += close(-1) + errno;
  }
  return x;
}
