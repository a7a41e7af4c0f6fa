// Numbers of 16 bits, single, and mixed with double.
//@ vary: N 50 500
static _Float16 f@_half[33];
static float f@_single[33];
word f@(word x) {
  for (int i = 0; i < 33; i++) f@_half[i] = (_Float16)(x % 7 + i) / 4;
  for (int i = 0; i < $N; i++) {
    f@_half[i % 33] = f@_half[i % 33] * (_Float16)0.5 + f@_half[(i + 5) % 33];
    if (f@_half[i % 33] > 30) f@_half[i % 33] -= 28;
    f@_single[i % 33] += (float)f@_half[i % 33] * 0.1f;
  }
  for (int i = 0; i < 33; i++) x = mix(x, bits((double)f@_half[i]) + bits(f@_single[i]));
  return x;
}
