// Thread-local objects with destructors that the loop makes.
//@ vary: N 100 900
#include <vector>
namespace {
struct f@_Cache {
  std::vector<word> kept;
  word hits = 0;
  f@_Cache() : kept(31, 1) {}
  ~f@_Cache() { std::fputs(hits ? "cache used\n" : "cache unused\n", stdout); }
};
word f@_use(word x) {
  thread_local f@_Cache cache;
  cache.hits++;
  return cache.kept[x % 31] += x;
}
}
extern "C" word f@(word x) {
  for (int i = 0; i < $N; i++) x = mix(x, f@_use(x + i));
  return x;
}
