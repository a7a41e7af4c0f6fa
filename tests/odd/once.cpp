// Static objects that are made on first use, and destroyed at the end.
//@ vary: N 50 500
#include <string>
namespace {
struct f@_Log {
  std::string text;
  explicit f@_Log(word x) : text(std::to_string(x)) {}
  ~f@_Log() { std::printf("log %zu\n", text.size()); }
};
word f@_note(word x) {
  static f@_Log log(x);
  log.text += static_cast<char>('a' + x % 26);
  return log.text.size();
}
}
extern "C" word f@(word x) {
  for (int i = 0; i < $N; i++) x = mix(x, f@_note(x));
  return x;
}
