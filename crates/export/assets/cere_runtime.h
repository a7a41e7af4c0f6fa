/* What libcere_runtime.a expects of glue.s. It is a whole program: it defines _start, and everything else of it is local.
 *
 * It reads the plan that the environment variable CERE_REPLAY_PLAN names, or else plan.json beside the executable, and writes
 * the plan's "outcome" (JSON): cycles of each repetition, tsc_hz, and the comparison with the captured state.
 */
#ifndef CERE_RUNTIME_H
#define CERE_RUNTIME_H

#include <stdint.h>

/* The region: void region(void *arguments), on the captured stack. */
extern void (*const cere_glue_invoke)(void *arguments);

/* A function at its captured address, and where it is in this executable; 0: nowhere. */
struct cere_jump {
  uint64_t captured, here;
};
extern const uint64_t cere_glue_jump_count, cere_glue_thunk_count;
extern const struct cere_jump cere_glue_jumps[], cere_glue_thunks[];

/* The calling thread's block of thread-local variables, and its size. */
extern void *cere_glue_tls(void);
extern const uint64_t cere_glue_tls_size;

#endif
