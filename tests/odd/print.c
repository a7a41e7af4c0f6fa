// Standard output and formatted text.
//@ vary: N 3 60
word f@(word x) {
  char text[200];
  for (int i = 0; i < $N; i++) {
    int length = snprintf(text, sizeof text, "%-8d|%+.3e|%lx|%s|%c|%5.1f%%", i, i / 3.0, x, "odd", 'a' + i % 26, i * 1.5);
    if (i % 3 == 0) printf("%s\n", text);
    int read;
    double half;
    sscanf(text, "%d |%le", &read, &half);
    for (int k = 0; k < length; k++) x = mix(x, text[k]);
    x = mix(x, read + bits(half));
  }
  fflush(stdout);
  return x;
}
