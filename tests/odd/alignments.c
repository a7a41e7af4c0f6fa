// Odd alignments: more than a page, and none.
//@ vary: N 100 900
//@ pick: AT 64 | 4096 | 65536
static _Alignas($AT) char f@_area[300];
struct __attribute__((packed)) f@_odd {
  char a;
  word b;
  short c;
  double d;
};
word f@(word x) {
  _Alignas(128) char local[130];
  struct f@_odd *list = malloc(20 * sizeof *list + 1);
  struct f@_odd *off = (struct f@_odd *)((char *)list + 1);
  memset(list, 0, 20 * sizeof *list + 1);
  memset(local, 1, sizeof local);
  for (int i = 0; i < $N; i++) {
    struct f@_odd *one = &off[i % 20];
    one->a += i;
    one->b += x ^ one->a;
    one->c -= one->b;
    one->d = one->d * 0.5 + one->c;
    f@_area[i % 300] += local[i % 130] += one->a;
    x = mix(x, one->b + bits(one->d) + f@_area[i % 300]);
  }
  x = mix(x, (uintptr_t)f@_area % $AT + (uintptr_t)local % 128);
  free(list);
  return x;
}
