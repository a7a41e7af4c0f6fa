#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
using word = unsigned long;
static inline word mix(word sum, word value) {
  sum = (sum ^ value) * 0x9E3779B97F4A7C15ul;
  return sum ^ sum >> 29;
}
static inline word bits(double value) {
  word all;
  std::memcpy(&all, &value, sizeof all);
  return all;
}
