// A string that two ends hold: what the example studies.
#include <stdio.h>
#define POINTS 100000
static double now[POINTS], before[POINTS];

static void step(double c) {
  for (int i = 1; i < POINTS - 1; i++) {
    double next = 2 * now[i] - before[i] + c * (now[i - 1] - 2 * now[i] + now[i + 1]);
    before[i] = now[i];
    now[i] = next;
  }
}

int main(void) {
  now[POINTS / 2] = before[POINTS / 2] = 1;
  for (int s = 0; s < 500; s++) step(0.25);
  double sum = 0;
  for (int i = 0; i < POINTS; i++) sum += now[i] * now[i];
  printf("%.12g\n", sum);
  return 0;
}
