// Exceptions thrown in another unit or library and caught here, with destructors on the way.
//@ vary: N 20 120
#include <stdexcept>
#include <string>
struct f@_Error : std::runtime_error {
  word code;
  f@_Error(word code) : std::runtime_error("odd " + std::to_string(code)), code(code) {}
};
word f@_x_risk(word x, int how);
namespace {
word f@_live;
struct Guard {
  word kept;
  explicit Guard(word k) : kept(k) { f@_live++; }
  ~Guard() { f@_live -= kept & 1 ? 1 : 2; f@_live += kept & 1 ? 0 : 1; }
};
}
extern "C" word f@(word x) {
  for (int i = 0; i < $N; i++) {
    Guard guard(x);
    try {
      Guard inner(x + i);
      x = mix(x, f@_x_risk(x, i % 5));
    } catch (const std::runtime_error &e) {
      x = mix(x, std::strlen(e.what()));
    } catch (int e) {
      x = mix(x, e);
    } catch (...) {
      x = mix(x, 99);
    }
  }
  return mix(x, f@_live);
}
//@ part: unit | library
#include <stdexcept>
#include <string>
word f@_x_risk(word x, int how) {
  std::string text(how * 9, 'q');
  if (how == 1) throw std::runtime_error(text);
  if (how == 2) throw static_cast<int>(x & 1023);
  if (how == 3) throw text;
  return text.size();
}
