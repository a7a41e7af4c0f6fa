#include "shared.h"
#include <cstdio>
int main() {
  Table<double> t{{1, 2.5, 3}};
  Table<int> u{{1, 2, 3, 4}};
  std::printf("%g %d %d %d\n", t.total(10), u.total(7), collatz(27), other());
  std::printf("%g %d\n", t.total(11), u.total(3));
}
