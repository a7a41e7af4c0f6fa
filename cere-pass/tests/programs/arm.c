// Arms every region of the image when ARM is set, and checks that entering and leaving balance.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct region {
  uint64_t magic;
  void (*hook)(struct region *, uint32_t, void *);
  const char *unit;
  uint32_t index, size;
  void (*invoke)(void *), *outlined;
  uint64_t scratch, reserved;
};
extern struct region __start_cere_regions[], __stop_cere_regions[];
static long count[3];
static void hook(struct region *region, uint32_t event, void *block) {
  (void)block;
  if (memcmp(&region->magic, "CEREREG1", 8) || memcmp(region->unit, "CEREUNI1", 8))
    abort();
  ++count[event];
}
static void report(void) { fprintf(stderr, "armed %ld %ld %ld\n", count[0], count[1], count[2]); }
__attribute__((constructor)) static void arm(void) {
  if (!getenv("ARM"))
    return;
  for (struct region *r = __start_cere_regions; r < __stop_cere_regions; ++r)
    if (r->magic)
      r->hook = hook;
  atexit(report);
}
