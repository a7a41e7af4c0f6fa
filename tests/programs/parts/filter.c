#include <math.h>
int smooth_calls;
static double keep[4];
static _Thread_local double last;

void smooth(double *values, int n) {
    smooth_calls++;
    for (int i = 1; i < n - 1; i++) {
        values[i] = (values[i - 1] + 2 * values[i] + values[i + 1]) / 4;
        keep[i & 3] += values[i];
        last = values[i];
    }
}

double apply(double (*f)(double), const double *values, int n) {
    double sum = last;
    for (int i = 0; i < n; i++)
        sum += f(values[i]) + sqrt(keep[i & 3]);
    return sum;
}
