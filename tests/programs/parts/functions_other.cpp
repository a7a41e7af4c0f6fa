#include "functions_shared.h"

double other_norm(const double *x, int n) { return shared_norm(x, n) + shared_norm(x, n / 2); }
