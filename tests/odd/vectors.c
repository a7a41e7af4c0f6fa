// Vector types of 16, 32 or 64 bytes.
//@ vary: N 100 900
//@ pick: BYTES 16 | 32 | 64
typedef float f@_floats __attribute__((vector_size($BYTES)));
typedef int f@_ints __attribute__((vector_size($BYTES)));
static f@_floats f@_data[8];
word f@(word x) {
  int lanes = $BYTES / 4;
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < lanes; k++) f@_data[i][k] = (float)(x % 13 + i + k) / 8;
  for (int i = 0; i < $N; i++) {
    f@_floats *v = &f@_data[i % 8];
    f@_floats *w = &f@_data[(i + 3) % 8];
    f@_ints low = *v < *w;
    *v = *v * 0.7f + *w * 0.3f;
    for (int k = 0; k < lanes; k++) (*v)[k] += low[k] ? 0.5f : -0.25f;
  }
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < lanes; k++) x = mix(x, bits(f@_data[i][k]));
  return x;
}
