#pragma once
inline double shared_norm(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum > 100 ? sum / n : sum;
}
double other_norm(const double *x, int n);
