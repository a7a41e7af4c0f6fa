// A function for the program's end, registered outside the loop or in it.
//@ vary: N 100 900
//@ pick: WHERE 0 | $N / 2
//@ pick: REGISTER atexit(f@_bye) | at_quick_exit(f@_bye) | on_exit((void (*)(int, void *))f@_bye, 0)
static word f@_count;
static void f@_bye(void) {
  printf("bye %lx\n", f@_count);
}
word f@(word x) {
  if (f@_count == 0 && x % 2) $REGISTER;
  for (int i = 0; i < $N; i++) {
    if (i + 1 == $WHERE && f@_count < 1000) $REGISTER;
    x = mix(x, ++f@_count);
  }
  return x;
}
