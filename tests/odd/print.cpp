// Standard output by iostreams.
//@ vary: N 3 30
#include <iostream>
extern "C" word f@(word x) {
  for (int i = 0; i < $N; i++) {
    std::cout << "line " << i << ' ' << (x & 255) << (i % 4 ? '\n' : ' ') << std::flush;
    x = mix(x, i);
  }
  std::cout << std::endl;
  return x;
}
