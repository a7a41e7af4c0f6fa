// Weak functions and variables that other units define as well, strongly, weakly, or without IR; one that stays; one that nobody
// defines.
//@ build: $CC $FLAGS -c $DIR/weak.c -o a.o && $CC $FLAGS -c $DIR/parts/weak_other.c -o b.o && /usr/bin/clang-22 -O2 -c $DIR/parts/weak_plain.c -o c.o && $CC $FLAGS a.o b.o c.o -o program
//@ codelets: 2
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>
typedef unsigned long word;
__attribute__((weak)) word strong_elsewhere(word x) { return x + 9; }
__attribute__((weak)) word plain_elsewhere(word x) { return x + 10; }
__attribute__((weak)) word weak_elsewhere(word x) { return x + 11; }
__attribute__((weak)) word stays(word x) { return x + 12; }
__attribute__((weak)) int number = 5;
extern __attribute__((weak)) word absent(word);
word other(word);
word kept[8];

__attribute__((noinline)) static word work(word x) {
  for (int i = 0; i < 400; i++) {
    x = strong_elsewhere(x) ^ plain_elsewhere(x + i);
    kept[i % 8] += x = weak_elsewhere(x) * 3 + stays(x) + number;
    if (absent) x = absent(x);
  }
  return x;
}

int main(void) {
  word (*volatile pointer)(word) = strong_elsewhere;
  printf("%lx %lx %lx\n", work(3), other(4), pointer(5));
}
