namespace field {
struct Grid {
  double cell[64];
  int size;
  void step(double by) {
    for (int i = 0; i < size; ++i) cell[i] += by; for (int i = 1; i < size; ++i) cell[i] -= cell[i - 1];
  }
};
template <class T> T largest(const T *of, int n) {
  T best = of[0];
  for (int i = 1; i < n; ++i)
    if (of[i] > best)
      best = of[i];
  return best;
}
} // namespace field
double use(field::Grid &g) {
  g.step(2);
  return field::largest(g.cell, g.size);
}
extern "C" int dispatch(const int *code) {
  static void *const to[] = {&&more, &&end};
  int n = 0;
more:
  n += 3;
  goto *to[*code++];
end:
  return n;
}
