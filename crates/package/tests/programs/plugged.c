// A shared library of the program.
int plugged_counter = 1;
static int table[64] = {9};
__attribute__((visibility("hidden"), noinline)) int hidden(int x) { return table[x & 63]; }
int plugged(int x) {
  for (int i = 0; i < 64; i++)
    table[i] += hidden(x) + plugged_counter;
  return table[1];
}
