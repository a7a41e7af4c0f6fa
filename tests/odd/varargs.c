// Functions with any number of arguments of several types.
//@ vary: N 50 500
static word f@_all(word sum, const char *types, ...) {
  va_list list, again;
  va_start(list, types);
  va_copy(again, list);
  for (; *types; types++)
    switch (*types) {
    case 'i': sum = mix(sum, (word)va_arg(list, int)); break;
    case 'd': sum = mix(sum, bits(va_arg(list, double) * 3)); break;
    case 'l': sum = mix(sum, (word)(double)(va_arg(list, long double) * 8)); break;
    default: sum = mix(sum, *va_arg(list, char *));
    }
  sum += va_arg(again, int);
  va_end(again);
  va_end(list);
  return sum;
}
word f@(word x) {
  for (int i = 0; i < $N; i++)
    x = f@_all(x, "idlsiiiiidddddddddi", i, i / 7.0, (long double)i / 4, "text", 1, 2, 3, 4, i, .1, .2, .3, .4, .5, .6, .7, .8, i * .9, 6);
  return x;
}
