// Blocks that are there before the loop, written and freed in it.
//@ vary: N 20 200
struct f@_node {
  struct f@_node *next;
  word value, dead;
};
word f@(word x) {
  struct f@_node *list = 0;
  for (int i = 0; i < $N; i++) {
    struct f@_node *one = malloc(sizeof *one);
    *one = (struct f@_node){list, x + i, 0};
    list = one;
  }
  while (list) {
    struct f@_node *next = list->next;
    x = mix(x, list->value);
    list->dead = x;
    free(list);
    list = next;
  }
  return x;
}
