#pragma once
#include <vector>
template <class T> struct Table {
  std::vector<T> data;
  T total(int n) const {
    static int calls;
    T s{};
    for (int i = 0; i < n; ++i) s += data[i % data.size()];
    return s + ++calls;
  }
};
inline int collatz(long n) {
  int steps = 0;
  while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; ++steps; }
  return steps;
}
int other();
