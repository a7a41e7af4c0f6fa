// Memory with guard pages at both ends: of no permission, or installed ones.
//@ allowed: guard pages
//@ vary: N 100 900
//@ pick: HOW mprotect(at, 4096, PROT_NONE) | madvise(at, 4096, 102)
#include <sys/mman.h>
word f@(word x) {
  size_t size = 16 * 4096;
  char *all = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int end = 0; end < 2; end++) {
    char *at = all + (end ? size - 4096 : 0);
    (void)$HOW;
  }
  word *inner = (word *)(all + 4096), count = (size - 8192) / sizeof(word);
  for (word i = 0; i < $N * 10; i++) inner[(i * 97) % count] += x + i;
  for (word i = 0; i < count; i++) x = mix(x, inner[i]);
  munmap(all, size);
  return x;
}
