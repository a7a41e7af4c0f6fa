// A generator of C++20.
//@ vary: N 100 900
#include <coroutine>
namespace {
struct f@_Numbers {
  struct promise_type {
    word value = 0;
    f@_Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(word v) {
      value = v;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
  std::coroutine_handle<promise_type> at;
  ~f@_Numbers() { at.destroy(); }
};
f@_Numbers f@_walk(word from, int count) {
  word kept[6] = {from, 2, 3, 5, 8, 13};
  for (int i = 0; i < count; i++) {
    kept[i % 6] = mix(kept[(i + 1) % 6], i);
    co_yield kept[i % 6];
  }
}
}
extern "C" word f@(word x) {
  auto numbers = f@_walk(x, $N);
  word sum = 0;
  while (numbers.at.resume(), !numbers.at.done()) sum = mix(sum, numbers.at.promise().value);
  return sum;
}
