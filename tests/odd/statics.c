// Static variables and functions of one name in two units.
//@ vary: N 100 900
static word kept = 3;
static word step(word a) { return a * 3 + ++kept; }
word f@_x_other(word);
word f@(word x) {
  for (int i = 0; i < $N; i++) x = mix(step(x), f@_x_other(x));
  return mix(x, kept);
}
//@ part: unit | library
static word kept[5] = {1, 2, 3, 4, 5};
static word step(word a) { return a ^ (kept[a % 5] += a & 15); }
word f@_x_other(word a) { return step(a) + step(a + 1); }
