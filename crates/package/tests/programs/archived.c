// Statics with the names of main.c's.
static int table[4] = {4, 5};
static int count;
static __attribute__((noinline)) int twice(int x) { return x + count; }

int archived(int x) {
  for (int i = 0; i < 4; i++) {
    table[i] += twice(x);
    count++;
  }
  return table[x & 3];
}

void archived_places(void (*show)(const char *, const void *)) {
  show("table archived.c", table);
  show("count archived.c", &count);
}
