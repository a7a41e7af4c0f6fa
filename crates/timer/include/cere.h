/* Timers in context: the time of a kernel whose operands are where its callers have them. C99 and C++.
 *
 *     cere_timer *timer = cere_timer_new();
 *     cere_timer_operand(timer, 8 * n, 64, 0, CERE_COLD);
 *     cere_timer_operand(timer, 8 * n, 64, 0, CERE_WARM);
 *     cere_result found;
 *     if (cere_timer_time(timer, dot, &n, &found) != CERE_OK)
 *         fprintf(stderr, "%s\n", cere_error());
 *     cere_timer_free(timer);
 *
 * Compile and link with `pkg-config --cflags --libs cere` (with --static for the archive).
 *
 * Functions that return int return CERE_OK or a code of what was wrong; cere_error() gives the message. A handle belongs
 * to one thread at a time, and not to its own kernel. A handle that is NULL is an error; one that was freed is undefined.
 */
#ifndef CERE_H
#define CERE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A timer: settings and operands. */
typedef struct cere_timer cere_timer;

/* What functions return. */
enum {
    CERE_OK = 0,
    CERE_NULL = 1,    /* an argument is NULL */
    CERE_VALUE = 2,   /* an argument has a value that it must not have */
    CERE_MEMORY = 3,  /* there is not enough memory */
    CERE_CONTEXT = 4, /* an operand cannot be in its state on this machine */
    CERE_SYSTEM = 5,  /* the system refused something */
    CERE_DEFECT = 6   /* a defect of this library */
};

/* Clocks. Wall time reports the minimum of the samples, processor time the median. */
enum {
    CERE_WALL = 0,       /* elapsed time, by the time stamp counter: the default */
    CERE_CPU = 1,        /* processor time of the calling thread */
    CERE_PROCESS_CPU = 2 /* processor time of all threads of the process */
};

/* States of an operand when a timed part begins. */
enum {
    CERE_COLD = 0, /* in no cache */
    CERE_WARM = -1 /* in the nearest cache that it fits in */
};
/* In the cache of level n, from 1, and in no nearer one. */
#define CERE_IN_LEVEL(n) (n)

/* How often the kernel runs in one timed part. */
enum {
    CERE_CHOSEN = 0, /* once if it is long enough for the clock, else several times: the default */
    CERE_ONE = 1,    /* once */
    CERE_SEVERAL = 2 /* two times or more, each on its own copy of the operands that are not warm */
};

/* How cold operands are flushed. */
enum {
    CERE_ADDRESS = 0, /* by address, where the processor can: the default there */
    CERE_WALK = 1     /* by reading an area that is larger than the caches */
};

/* What a timing found. Times are seconds of one invocation; the clock's cost is subtracted. */
typedef struct cere_result {
    double seconds;       /* the reported time: minimum (wall) or median (processor time) */
    double minimum;       /* of the samples */
    double lower;         /* quartile */
    double median;
    double upper;         /* quartile */
    double maximum;
    double low;           /* the median's interval */
    double high;
    double level;         /* probability that the median lies in it: 0.95 or more from 6 samples on */
    double cost;          /* of the clock: what an empty timed part shows */
    double step;          /* of the clock: the smallest difference of two readings */
    double overhead;      /* an invocation of an empty kernel in the same loop; not subtracted */
    uint64_t faults;      /* page faults of the calling thread in the timed parts */
    uint64_t switches;    /* its context switches there */
    uint64_t invocations; /* of one timed part */
    uint64_t samples;     /* how many: cere_timer_samples gives them */
    int clock;            /* CERE_WALL ... */
    int flush;            /* CERE_ADDRESS or CERE_WALK */
} cere_result;

/* A kernel: the operands in the order in which they were added, and what cere_timer_time was given. It must return: no
 * longjmp, no exception. */
typedef void (*cere_kernel)(void *const *operands, void *context);

/* Writes the values of one copy of an operand. It must return. */
typedef void (*cere_fill)(void *operand, size_t bytes, void *context);

/* A timer of wall time with 7 samples and no operands; NULL on failure. */
cere_timer *cere_timer_new(void);
/* Frees it. NULL is let pass. */
void cere_timer_free(cere_timer *timer);

/* CERE_WALL, CERE_CPU or CERE_PROCESS_CPU. */
int cere_timer_set_clock(cere_timer *timer, int clock);
/* 1 to 1000000 samples; fewer than 6 have no interval of 95 %. */
int cere_timer_set_samples(cere_timer *timer, size_t samples);
/* CERE_CHOSEN, CERE_ONE or CERE_SEVERAL. */
int cere_timer_set_invocations(cere_timer *timer, int invocations);
/* CERE_ADDRESS or CERE_WALK. */
int cere_timer_set_flush(cere_timer *timer, int flush);
/* Not 0 for kernels that use a team of threads: flushes on all processors that the process may use. */
int cere_timer_set_parallel(cere_timer *timer, int parallel);
/* Bytes of the caches by level, the first next to the core: for machines whose system shows none or wrong ones. */
int cere_timer_set_caches(cere_timer *timer, const size_t *bytes, size_t levels);

/* Adds an operand of `bytes`, aligned to `align` (a power of two) and not aligned to `misalign` (a power of two above
 * `align`, or 0), in `state`: CERE_COLD, CERE_WARM or CERE_IN_LEVEL(n). Its values are around 1, of both signs, whether
 * read as double, float or a floating-point format of 16 bits. */
int cere_timer_operand(cere_timer *timer, size_t bytes, size_t align, size_t misalign, int state);
/* The same with values by `fill`, called for each copy of the operand in each cere_timer_time before anything is timed. */
int cere_timer_operand_filled(cere_timer *timer, size_t bytes, size_t align, size_t misalign, int state, cere_fill fill,
                              void *context);

/* Times `kernel` and writes what it found to `result`. */
int cere_timer_time(cere_timer *timer, cere_kernel kernel, void *context, cere_result *result);
/* The samples of the last timing in their order, valid until the next; `count` gets their number. NULL if there are none. */
const double *cere_timer_samples(const cere_timer *timer, size_t *count);
/* Copies of operand `index` that the last timing used: 1 if it stayed in place, 0 if there is none. */
size_t cere_timer_copies(const cere_timer *timer, size_t index);

/* Memory aligned to `align` and not aligned to `misalign`, as for operands: zero, its pages untouched. NULL on failure. */
void *cere_amalloc(size_t bytes, size_t align, size_t misalign);
/* Frees such memory. NULL is let pass; another address is an error. */
int cere_afree(void *memory);

/* The message of the calling thread's last failure, valid until its next; "" if there was none. */
const char *cere_error(void);

#ifdef __cplusplus
}
#endif

#endif
