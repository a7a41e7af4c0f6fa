// Conversions that read the locale.
//@ vary: N 20 200
#include <ctype.h>
#include <locale.h>
#include <wchar.h>
#include <wctype.h>
word f@(word x) {
  setlocale(LC_ALL, "C.UTF-8");
  for (int i = 0; i < $N; i++) {
    char text[40];
    wchar_t wide[40];
    sprintf(text, "%d.%dxyz\xc3\xa4", i, i * 7 % 10);
    char *end;
    double value = strtod(text, &end);
    size_t length = mbstowcs(wide, text, 40);
    x = mix(x, bits(value) + (word)(end - text) + length + towupper(wide[length - 1]));
    x = mix(x, (word)toupper(text[0]) + (isalpha((unsigned char)*end) != 0) + (strcoll(text, "5") > 0));
  }
  setlocale(LC_ALL, "C");
  return x;
}
