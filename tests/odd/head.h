#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef unsigned long word;
static inline word mix(word sum, word value) {
  sum = (sum ^ value) * 0x9E3779B97F4A7C15ul;
  return sum ^ sum >> 29;
}
static inline word bits(double value) {
  word all;
  memcpy(&all, &value, sizeof all);
  return all;
}
