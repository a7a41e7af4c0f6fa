// Large arrays on the stack.
//@ vary: N 20000 300000
word f@(word x) {
  volatile int tail = 3;
  int numbers[$N];
  for (int i = 0; i < $N; i++) numbers[i] = (int)(x + i * 7);
  for (int i = 1; i < $N; i += 3) numbers[i] ^= numbers[i - 1] + tail;
  for (int i = 0; i < $N; i += 11) x = mix(x, numbers[i]);
  return x;
}
