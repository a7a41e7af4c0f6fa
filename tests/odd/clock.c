// Clocks, dates and random numbers of libc, none of which the result depends on.
//@ vary: N 10 100
#include <time.h>
word f@(word x) {
  struct timespec began, now;
  clock_gettime(CLOCK_MONOTONIC, &began);
  srand((unsigned)x);
  for (int i = 0; i < $N; i++) {
    time_t moment = 86400l * i * 37 + (time_t)(x % 1000);
    struct tm day;
    char text[60];
    gmtime_r(&moment, &day);
    size_t length = strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %j", &day);
    for (size_t k = 0; k < length; k++) x = mix(x, text[k]);
    clock_gettime(CLOCK_MONOTONIC, &now);
    x = mix(x, now.tv_sec >= began.tv_sec) + (word)(rand_r(&(unsigned){7}) & 1);
  }
  return x;
}
