// An interpreter by labels as values; its code, static or in the heap, holds their addresses.
//@ vary: N 50 400
//@ pick: WHERE static void *code[64] | void **code = malloc(64 * sizeof *code)
//@ allowed: label
static double f@_run(void **code, double a, const void **labels) {
  static const void *const table[] = {&&add, &&multiply, &&subtract, &&end};
  if (labels) {
    memcpy(labels, table, sizeof table);
    return 0;
  }
  double b = 1.0 / 3;
  goto **code;
add:
  a = a * b + 1.25;
  goto **++code;
multiply:
  b = b * 0.9 - a * 0.1;
  goto **++code;
subtract:
  a -= b * 0.7;
  goto **++code;
end:
  return a + b;
}
word f@(word x) {
  const void *labels[4];
  f@_run(0, 0, labels);
  $WHERE;
  for (int i = 0; i < 63; i++) code[i] = (void *)labels[(x + i * 7) % 3];
  code[63] = (void *)labels[3];
  double sum = 0;
  for (int i = 0; i < $N; i++) sum += f@_run(code, 1.0 / (i + 3), 0);
  return bits(sum);
}
