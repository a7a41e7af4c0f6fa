// Sorting and searching with callbacks.
//@ vary: N 50 600
struct f@_pair {
  int key;
  double value;
};
static int f@_by_key(const void *a, const void *b) {
  int x = ((const struct f@_pair *)a)->key, y = ((const struct f@_pair *)b)->key;
  return (x > y) - (x < y);
}
static int f@_turned(const void *a, const void *b, void *count) {
  ++*(int *)count;
  return f@_by_key(b, a);
}
word f@(word x) {
  struct f@_pair *list = malloc($N * sizeof *list);
  for (int i = 0; i < $N; i++) list[i] = (struct f@_pair){(i * 7919) % 10007, i / 3.0};
  for (int turn = 0; turn < 3; turn++) {
    int calls = 0;
    qsort_r(list, $N, sizeof *list, f@_turned, &calls);
    x = mix(x, list[0].key + (calls > 0));
    qsort(list, $N, sizeof *list, f@_by_key);
    struct f@_pair wanted = list[(x >> 8) % $N], *found = bsearch(&wanted, list, $N, sizeof *list, f@_by_key);
    x = mix(x, bits(found->value));
    list[turn].key += 3;
  }
  free(list);
  return x;
}
