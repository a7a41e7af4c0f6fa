// Weak symbols, aliases, constructors, tentative and common variables.
//@ vary: N 100 900
__attribute__((weak)) word f@_x_hook(word x) { return x + 9; }
static word f@_real(word x) { return x * 11 + 1; }
word f@_x_alias(word) __attribute__((alias("f@_target")));
__attribute__((used)) word f@_target(word x) { return f@_real(x) ^ 5; }
extern word f@_x_absent(word) __attribute__((weak));
static word f@_made;
__attribute__((constructor)) static void f@_begin(void) { f@_made = 77; }
word f@_x_tentative;
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    x = mix(f@_x_hook(x), f@_x_alias(x));
    if (f@_x_absent) x = f@_x_absent(x);
    x += f@_made++ + (f@_x_tentative ^= x);
  }
  return x;
}
//@ part: unit
word f@_x_hook(word x) { return (x << 3) - x; }
