// Blocks that grow, shrink, move and are freed in another order.
//@ vary: N 100 900
word f@(word x) {
  char *blocks[13] = {0};
  size_t sizes[13] = {0};
  for (int i = 0; i < $N; i++) {
    int which = (int)(x >> 5) % 13 & 15;
    which %= 13;
    size_t size = 1 + x % (i % 40 ? 700 : 200000);
    if (i % 11 == 0) {
      free(blocks[which]);
      blocks[which] = i % 2 ? calloc(size, 1) : memset(aligned_alloc(64, (size + 63) / 64 * 64), 1, size);
    } else {
      blocks[which] = realloc(blocks[which], size);
      if (size > sizes[which]) memset(blocks[which] + sizes[which], (int)i, size - sizes[which]);
    }
    sizes[which] = size;
    x = mix(x, blocks[which][size / 2] + size);
  }
  for (int i = 0; i < 13; i++) free(blocks[i]);
  return x;
}
