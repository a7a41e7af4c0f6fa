#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static volatile int one = 1;
struct A { int v; };
struct B : A {};
struct C { int v; };
static int depth;
struct Guard {
  const char *name;
  explicit Guard(const char *n) : name(n) { ++depth; }
  ~Guard() { --depth; std::printf("~%s ", name); }
};
static void may(int i) {
  if (i == 3) throw B{{i}};
  if (i == 5) throw C{i};
  if (i == 7) throw std::runtime_error("seven");
  if (i == 11) throw 42L;
}
// Thrown out of the loop, told apart behind it; another try of the function orders the types otherwise.
static int outside(int n, int from) {
  try { may(n); } catch (long &) { return -9; } catch (C &c) { std::printf("[first C] "); } catch (A &) { std::printf("[first A] "); }
  try {
    Guard g("outside");
    for (int i = from; i < n; ++i) { Guard h("in"); may(i); }
    return 0;
  } catch (A &a) { return 100 + a.v; } catch (C &c) { return 200 + c.v; } catch (std::exception &e) { return 300 + e.what()[0]; }
}
static int inside(int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) {
    try { may(i); s += i; } catch (A &a) { s += 10 * a.v; } catch (C &c) { s -= c.v; if (s < -1000) break; } catch (...) { s *= 2; }
  }
  return s;
}
static int inside_and_beyond(int n, int from) {
  int s = 0;
  try {
    for (int i = from; i < n; ++i) {
      Guard g("each");
      try { may(i); } catch (C &c) { s += c.v; } catch (const std::exception &) { s += 1000; break; }
    }
  } catch (A &) { s += 5; } catch (long v) { s += (int)v; }
  return s;
}
static void through(int n, int from) {
  for (int i = from; i < n; ++i) may(i);
}
static void through_cleanup(int n, int from) {
  Guard g("around");
  for (int i = from; i < n; ++i) { Guard h("body"); may(i); }
}
static int rethrows(int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) {
    try {
      try { through_cleanup(i + 1, i); } catch (std::exception &) { s += 1; throw; } catch (A &a) { throw C{a.v}; }
    } catch (C &c) { s += c.v * 100; } catch (std::exception &) { s += 10000; } catch (long) { s += 7; }
  }
  return s;
}
static int no_throw(int n) noexcept {
  int s = 0;
  for (int i = 0; i < n; ++i) { std::string t = std::to_string(i * one); s += (int)t.size(); }
  return s;
}
// The function that throws is small enough to be inlined into one that catches.
static inline void small(int n) { for (int i = 0; i < n; ++i) { Guard g("small"); may(i); } }
static int inlined(int n) {
  try { Guard g("inlined"); small(n); } catch (A &a) { return a.v; } catch (long) { return 2; }
  return 1;
}
__attribute__((always_inline)) static inline int always(int n) {
  int s = 0;
  try { for (int i = 0; i < n; ++i) { Guard g("always"); may(i); s += i; } } catch (A &a) { s += a.v * 50; }
  return s;
}
struct Shape { virtual ~Shape() = default; virtual double area(int) const = 0; };
struct Square : Shape { double s; explicit Square(double v) : s(v) {} double area(int i) const override { may(i); return s * s; } };
struct Disc : Shape { double r; explicit Disc(double v) : r(v) {} double area(int i) const override { if (i > 8) throw std::out_of_range("disc"); return 3 * r * r; } };
namespace grid {
struct Grid {
  std::vector<double> cells;
  int step(int n) {
    for (int i = 0; i < n; ++i) cells.push_back(cells[i] * 0.5 + one);
    return (int)cells.size();
  }
  Grid() : cells(3, 1.0) {}
};
} // namespace grid
template <class T> T sum(const std::vector<T> &v) {
  T s{};
  for (const T &x : v) s += x;
  return s;
}
static std::string text(const std::map<std::string, int> &m) {
  std::string s;
  for (const auto &[k, v] : m) { if (v < 0) throw std::invalid_argument(k); s += k + "=" + std::to_string(v) + ";"; }
  return s;
}
int main() {
  for (int n : {3, 4, 5, 6, 8, 12}) std::printf("%d %d\n", outside(n, n - 1), outside(n, 0));
  std::printf("%d %d\n", inside(7), inside(13));
  for (int from : {0, 4, 6, 8, 10}) std::printf("%d\n", inside_and_beyond(from + 3, from));
  for (int from : {0, 4, 6, 8}) {
    try { through(12, from); } catch (A &a) { std::printf("A%d ", a.v); } catch (C &c) { std::printf("C%d ", c.v); } catch (std::exception &e) { std::printf("%s ", e.what()); } catch (long l) { std::printf("%ld ", l); }
    try { through_cleanup(12, from); } catch (C &c) { std::printf("C%d ", c.v); } catch (A &a) { std::printf("A%d ", a.v); } catch (std::exception &e) { std::printf("%s ", e.what()); } catch (...) { std::printf("other "); }
    std::printf("%d\n", depth);
  }
  std::printf("%d %d %d %d %d\n", rethrows(13), no_throw(120), inlined(5), inlined(2), always(3));
  try { std::printf("%d\n", inlined(7)); } catch (...) { std::printf("not here\n"); }
  try { std::printf("%d\n", always(9)); } catch (C &c) { std::printf("always C%d\n", c.v); }
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 10; ++i) { if (i & 1) shapes.push_back(std::make_unique<Square>(i)); else shapes.push_back(std::make_unique<Disc>(i)); }
  double total = 0;
  int caught = 0;
  for (int i = 0; i < 12; ++i) try { total += shapes.at(i)->area(i); } catch (const std::out_of_range &) { caught += 100; } catch (const B &) { ++caught; } catch (const std::exception &) { caught += 10; } catch (const C &) { caught += 1000; }
  grid::Grid g;
  std::printf("%g %d %d %g\n", total, caught, g.step(40), sum(g.cells));
  std::function<int(int)> f = [&](int k) { int s = 0; for (int i = 0; i < k; ++i) s += i * one; return k ? s + f(k - 1) : s; };
  std::printf("%d %s\n", f(9), text({{"a", 1}, {"b", 2}}).c_str());
  try { text({{"bad", -1}}); } catch (std::invalid_argument &e) { std::printf("%s\n", e.what()); }
  std::vector<std::string> words{"pear", "fig", "apple", "kiwi"};
  std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
  for (const auto &w : words) std::printf("%s ", w.c_str());
  std::printf("%d\n", depth);
}
