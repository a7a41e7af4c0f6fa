// A library, or an object compiled otherwise, with hidden and local symbols that others reach.
//@ vary: N 100 900
word f@_x_call(word, int);
extern const int f@_x_table[16];
word f@(word x) {
  for (int i = 0; i < $N; i++) x = mix(x, f@_x_call(x, f@_x_table[i % 16]));
  return x;
}
//@ part: unit | library | plain
__attribute__((visibility("hidden"))) const short f@_weights[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
const int f@_x_table[16] = {0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11};
static word f@_local(word a, int b) { return a * f@_weights[b & 15]; }
__attribute__((visibility("hidden"))) word f@_inner(word a, int b) {
  for (int i = 0; i < 3; i++) a = mix(a, f@_local(a, b + i));
  return a;
}
word f@_x_call(word a, int b) { return f@_inner(a, b) + f@_local(a, b); }
