// Instructions of the processor in the text.
//@ vary: N 100 900
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    word low, high;
    __asm__("mulq %3" : "=a"(low), "=d"(high) : "a"(x | 1), "r"(0x9E3779B97F4A7C15ul + i));
    __asm__("rorq $13, %0" : "+r"(low));
    __asm__ volatile("" : : : "memory");
    x = low ^ high;
  }
  return x;
}
