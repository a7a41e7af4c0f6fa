// Memory that is mapped twice, from memfd_create.
//@ vary: N 20 200
//@ allowed: shared
//@ allowed: two addresses
//@ allowed: mapped
#include <sys/mman.h>
word f@(word x) {
  int file = memfd_create("odd", 0);
  if (ftruncate(file, 8192)) return 1;
  char *one = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  char *two = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  for (int i = 0; i < $N; i++) {
    one[i * 37 % 8192] += (char)(x + i);
    x = mix(x, two[i * 37 % 8192]);
  }
  munmap(one, 8192);
  munmap(two, 8192);
  close(file);
  return x;
}
