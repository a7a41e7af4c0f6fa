// long double, by value, in memory and through libm.
//@ vary: N 50 500
static long double f@_state[7];
static long double f@_step(long double a, long double b) { return a * 0.75L + b / 3; }
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    f@_state[i % 7] = f@_step(f@_state[i % 7], f@_state[(i + 1) % 7] + (long double)(x % 19));
    if (i % 5 == 0) f@_state[i % 7] = sqrtl(f@_state[i % 7] + 1) + fabsl(f@_state[(i + 2) % 7]);
  }
  for (int i = 0; i < 7; i++)
    for (int k = 0; k < 10; k++) x = mix(x, ((unsigned char *)&f@_state[i])[k]);
  return x;
}
