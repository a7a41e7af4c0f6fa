// Containers, strings, smart pointers, functions as objects.
//@ vary: N 50 500
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
extern "C" word f@(word x) {
  std::map<std::string, word> ordered;
  std::unordered_map<word, std::shared_ptr<std::vector<word>>> shared;
  std::function<word(word)> step = [&](word a) { return mix(a, ordered.size()); };
  for (int i = 0; i < $N; i++) {
    ordered["key" + std::to_string(x % 50)] += i;
    auto &one = shared[i % 17];
    if (!one) one = std::make_shared<std::vector<word>>();
    one->push_back(x);
    if (one->size() > 9) one.reset();
    x = step(x);
    if (i == $N / 2) step = [kept = x](word a) { return a ^ kept; };
  }
  for (auto &[key, value] : ordered) x = mix(x, key.size() + value);
  for (word i = 0; i < 17; i++)
    if (shared[i]) std::sort(shared[i]->begin(), shared[i]->end()), x = mix(x, shared[i]->empty() ? 0 : shared[i]->back());
  return x;
}
