// Shares the pages of executed code, but nothing calls it.
static int table[2];
void unused(void) {
  for (int i = 0; i < 2; i++)
    table[i]++;
}
