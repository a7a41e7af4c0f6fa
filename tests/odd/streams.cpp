// String streams, manipulators, locales and facets of them.
//@ vary: N 20 90
#include <iomanip>
#include <locale>
#include <sstream>
extern "C" word f@(word x) {
  std::locale plain = std::locale::classic();
  word sum = x;
  for (int i = 0; i < $N; i++) {
    std::ostringstream out;
    out.imbue(plain);
    out << std::setw(12) << std::hex << x + i << ' ' << std::fixed << std::setprecision(3) << i / 8.0 << ' ' << std::boolalpha << (i % 3 == 0);
    std::istringstream in(out.str());
    word back;
    double value;
    in >> std::hex >> back >> value;
    auto &type = std::use_facet<std::ctype<char>>(plain);
    sum = mix(sum, back + bits(value) + type.toupper(out.str()[11]));
  }
  return sum;
}
