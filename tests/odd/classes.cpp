// Virtual functions, casts that look at types, classes of one name in two units.
//@ vary: N 50 500
#include <memory>
#include <typeinfo>
#include <vector>
struct f@_Shape {
  virtual ~f@_Shape() = default;
  virtual word area(word) const = 0;
};
std::unique_ptr<f@_Shape> f@_x_other();
namespace {
struct Box : f@_Shape {
  word side = 3;
  word area(word x) const override { return x * side; }
};
struct Wide : Box {
  word area(word x) const override { return Box::area(x) + 1; }
};
}
extern "C" word f@(word x) {
  std::vector<std::unique_ptr<f@_Shape>> all;
  for (int i = 0; i < $N; i++) {
    if (i % 3 == 0) all.push_back(std::make_unique<Box>());
    else if (i % 3 == 1) all.push_back(std::make_unique<Wide>());
    else all.push_back(f@_x_other());
  }
  for (auto &one : all) {
    x = mix(x, one->area(x));
    if (auto *box = dynamic_cast<Box *>(one.get())) box->side++;
    if (typeid(*one) == typeid(Wide)) x++;
  }
  return x;
}
//@ part: unit | library
#include <memory>
struct f@_Shape {
  virtual ~f@_Shape() = default;
  virtual word area(word) const = 0;
};
namespace {
struct Box : f@_Shape {
  word turns = 9;
  word area(word x) const override { return x ^ turns; }
};
}
std::unique_ptr<f@_Shape> f@_x_other() { return std::make_unique<Box>(); }
