// Mappings that a loop makes, moves and drops.
//@ vary: N 5 40
//@ allowed: mapp
#include <sys/mman.h>
word f@(word x) {
  char *kept = 0;
  size_t size = 0;
  for (int i = 1; i <= $N; i++) {
    size_t wanted = 4096ul * (1 + i * 5 % 11);
    if (!kept) kept = mmap(0, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else kept = mremap(kept, size, wanted, MREMAP_MAYMOVE);
    size = wanted;
    for (size_t at = i; at < size; at += 701) kept[at] += (char)(x + at);
    if (i % 6 == 0) madvise(kept, 4096, MADV_DONTNEED);
    for (size_t at = i; at < size; at += 701) x = mix(x, kept[at]);
    if (i % 9 == 0) munmap(kept, size), kept = 0;
  }
  if (kept) munmap(kept, size);
  return x;
}
