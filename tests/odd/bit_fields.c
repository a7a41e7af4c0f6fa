// Bit fields of several widths, unions over them.
//@ vary: N 100 900
static union f@_mixed {
  struct {
    unsigned a : 3, b : 11;
    signed c : 5;
    unsigned long d : 40;
    _Bool e : 1;
  } parts;
  unsigned char bytes[16];
} f@_all[9];
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    union f@_mixed *one = &f@_all[i % 9];
    one->parts.a += 3;
    one->parts.b ^= x;
    one->parts.c = (int)(x >> 9) % 16;
    one->parts.d += one->parts.b * 77ul + one->parts.c;
    one->parts.e ^= one->parts.d & 1;
    x = mix(x, one->parts.a + one->parts.d + one->bytes[2]);
  }
  return x;
}
