// Atomic variables of several sizes.
//@ vary: N 100 900
//@ pick: ORDER memory_order_relaxed | memory_order_seq_cst | memory_order_acq_rel
#include <stdatomic.h>
static atomic_int f@_small;
static _Atomic word f@_wide;
static _Atomic double f@_real;
static atomic_flag f@_flag = ATOMIC_FLAG_INIT;
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    atomic_fetch_add_explicit(&f@_small, i, $ORDER);
    word seen = atomic_load(&f@_wide);
    while (!atomic_compare_exchange_weak(&f@_wide, &seen, mix(seen, x + i))) {}
    if (!atomic_flag_test_and_set(&f@_flag)) f@_real = f@_real * 0.5 + i;
    else atomic_flag_clear(&f@_flag);
    x = mix(x, f@_wide + (word)f@_small + bits(f@_real));
  }
  return x;
}
