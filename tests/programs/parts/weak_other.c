typedef unsigned long word;
word strong_elsewhere(word x) { return (x << 3) - x; }
__attribute__((weak)) word weak_elsewhere(word x) { return x ^ 0x77; }
int number = 6;
word other(word x) {
  for (int i = 0; i < 200; i++) x = strong_elsewhere(x) + weak_elsewhere(x + i);
  return x;
}
