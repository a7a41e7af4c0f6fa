static int mine;
#pragma omp threadprivate(mine)
double total;
double work(int n) {
  static double cache;
  double sum = 0, parts[4] = {0};
#pragma omp parallel for reduction(+ : sum, parts)
  for (int i = 0; i < n; i++) {
    mine += i;
    sum += i;
    parts[i & 3] += mine;
#pragma omp critical
    total += i;
#pragma omp critical(named) hint(1)
    cache += i;
  }
  return sum + parts[1] + cache;
}
