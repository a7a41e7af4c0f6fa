#include "shared.h"
int other() {
  Table<int> u{{5, 6}};
  int s = 0;
  for (int i = 1; i < 40; ++i) s += collatz(i) + u.total(i);
  return s;
}
