/* Every function of cere.h. Compiled as C99 and as C++. */
#include <cere.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, cere_error());                         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct seen {
    size_t n, calls, wrong;
    uintptr_t first[2], least[2];
    double sum;
};

static void dot(void *const *operands, void *context) {
    struct seen *seen = (struct seen *)context;
    const double *x = (const double *)operands[0], *y = (const double *)operands[1];
    double sum = 0;
    size_t i;
    for (i = 0; i < 2; i++) {
        uintptr_t at = (uintptr_t)operands[i];
        if (seen->calls == 0)
            seen->first[i] = seen->least[i] = at;
        if (at < seen->least[i])
            seen->least[i] = at;
        seen->wrong += at % 8 != 0 || at % 16 == 0;
    }
    for (i = 0; i < seen->n; i++)
        sum += x[i] * y[i];
    seen->sum = sum;
    seen->calls++;
}

static void twos(void *operand, size_t bytes, void *context) {
    size_t i, *calls = (size_t *)context;
    for (i = 0; i < bytes / sizeof(double); i++)
        ((double *)operand)[i] = 2;
    ++*calls;
}

static void nothing(void *const *operands, void *context) {
    (void)operands;
    (void)context;
}

static void times(void) {
    struct seen seen;
    cere_result found;
    size_t fills = 0, count = 0, i;
    const double *samples;
    const size_t caches[2] = {32 << 10, 1 << 20};
    cere_timer *timer = cere_timer_new();
    CHECK(timer != NULL);
    memset(&seen, 0, sizeof seen);
    seen.n = 100;
    CHECK(cere_timer_copies(timer, 0) == 0);
    CHECK(cere_timer_samples(timer, &count) == NULL && count == 0);
    CHECK(cere_timer_operand_filled(timer, 8 * seen.n, 8, 16, CERE_COLD, twos, &fills) == CERE_OK);
    CHECK(cere_timer_operand_filled(timer, 8 * seen.n, 8, 16, CERE_WARM, twos, &fills) == CERE_OK);
    CHECK(cere_timer_set_samples(timer, 5) == CERE_OK);
    CHECK(cere_timer_set_caches(timer, caches, 2) == CERE_OK);
    CHECK(cere_timer_set_invocations(timer, CERE_SEVERAL) == CERE_OK);
    CHECK(cere_timer_time(timer, dot, &seen, &found) == CERE_OK);
    CHECK(seen.sum == 400.0 && seen.wrong == 0);
    CHECK(found.samples == 5 && found.invocations > 1 && found.seconds == found.minimum && found.seconds > 0);
    CHECK(found.minimum <= found.lower && found.lower <= found.median && found.median <= found.upper);
    CHECK(found.upper <= found.maximum && found.low <= found.median && found.median <= found.high);
    CHECK(found.level > 0.9 && found.level < 0.95);
    CHECK(found.cost > 0 && found.step > 0 && found.overhead >= 0 && found.faults == 0);
    CHECK(found.clock == CERE_WALL);
    CHECK(seen.calls > 5 * found.invocations);
    CHECK(cere_timer_copies(timer, 0) > 1 && cere_timer_copies(timer, 1) == 1 && cere_timer_copies(timer, 2) == 0);
    CHECK(fills > cere_timer_copies(timer, 0));
    samples = cere_timer_samples(timer, &count);
    CHECK(samples != NULL && count == 5);
    for (i = 0; i < count; i++)
        CHECK(samples[i] >= found.minimum && samples[i] <= found.maximum);

    CHECK(cere_timer_set_invocations(timer, CERE_ONE) == CERE_OK);
    CHECK(cere_timer_set_flush(timer, CERE_WALK) == CERE_OK);
    CHECK(cere_timer_set_parallel(timer, 1) == CERE_OK);
    CHECK(cere_timer_set_clock(timer, CERE_CPU) == CERE_OK);
    CHECK(cere_timer_time(timer, dot, &seen, &found) == CERE_OK);
    CHECK(found.invocations == 1 && found.flush == CERE_WALK && found.clock == CERE_CPU);
    CHECK(found.seconds == found.median);
    cere_timer_free(timer);
}

static void errors(void) {
    cere_result found;
    const double *none;
    size_t count;
    cere_timer *timer = cere_timer_new();
    CHECK(timer != NULL);
    CHECK(cere_timer_time(NULL, nothing, NULL, &found) == CERE_NULL && strstr(cere_error(), "timer"));
    CHECK(cere_timer_time(timer, NULL, NULL, &found) == CERE_NULL && strstr(cere_error(), "kernel"));
    CHECK(cere_timer_time(timer, nothing, NULL, NULL) == CERE_NULL && strstr(cere_error(), "result"));
    CHECK(cere_timer_operand(NULL, 8, 8, 0, CERE_COLD) == CERE_NULL);
    CHECK(cere_timer_operand(timer, 0, 8, 0, CERE_COLD) == CERE_VALUE && strstr(cere_error(), "0 bytes"));
    CHECK(cere_timer_operand(timer, 8, 0, 0, CERE_COLD) == CERE_VALUE);
    CHECK(cere_timer_operand(timer, 8, 24, 0, CERE_COLD) == CERE_VALUE && strstr(cere_error(), "24"));
    CHECK(cere_timer_operand(timer, 8, 16, 16, CERE_COLD) == CERE_VALUE);
    CHECK(cere_timer_operand(timer, 8, 16, 8, CERE_COLD) == CERE_VALUE);
    CHECK(cere_timer_operand(timer, 8, 8, 0, -2) == CERE_VALUE && strstr(cere_error(), "-2"));
    CHECK(cere_timer_operand_filled(timer, 8, 8, 0, CERE_COLD, NULL, NULL) == CERE_NULL);
    CHECK(cere_timer_set_clock(timer, 3) == CERE_VALUE && cere_timer_set_clock(NULL, 0) == CERE_NULL);
    CHECK(cere_timer_set_clock(timer, -1) == CERE_VALUE && strstr(cere_error(), "-1"));
    CHECK(cere_timer_set_samples(timer, 0) == CERE_VALUE);
    CHECK(cere_timer_set_invocations(timer, 9) == CERE_VALUE && cere_timer_set_flush(timer, 2) == CERE_VALUE);
    CHECK(cere_timer_set_parallel(NULL, 1) == CERE_NULL && cere_timer_set_caches(timer, NULL, 1) == CERE_NULL);
    none = cere_timer_samples(NULL, &count);
    CHECK(none == NULL && cere_timer_samples(timer, NULL) == NULL);
    /* None of them changed the timer. */
    CHECK(cere_timer_time(timer, nothing, NULL, &found) == CERE_OK && found.clock == CERE_WALL && found.samples == 7);
    CHECK(cere_timer_operand(timer, (size_t)1 << 50, 8, 0, CERE_COLD) == CERE_OK);
    CHECK(cere_timer_time(timer, nothing, NULL, &found) == CERE_MEMORY);
    CHECK(cere_timer_samples(timer, &count) == NULL && count == 0);
    cere_timer_free(timer);
    timer = cere_timer_new();
    CHECK(cere_timer_operand(timer, 64, 64, 0, CERE_IN_LEVEL(99)) == CERE_OK);
    CHECK(cere_timer_time(timer, nothing, NULL, &found) == CERE_CONTEXT && strstr(cere_error(), "99"));
    cere_timer_free(timer);
    cere_timer_free(NULL);
}

static void memory(void) {
    char *at = (char *)cere_amalloc(1000, 8, 16);
    CHECK(at != NULL && (uintptr_t)at % 8 == 0 && (uintptr_t)at % 16 != 0);
    memset(at, 1, 1000);
    CHECK(cere_afree(at + 8) == CERE_VALUE);
    CHECK(cere_afree(at) == CERE_OK && cere_afree(at) == CERE_VALUE && cere_afree(NULL) == CERE_OK);
    CHECK(cere_amalloc(0, 8, 0) == NULL && cere_amalloc(8, 3, 0) == NULL && cere_amalloc((size_t)-1, 8, 0) == NULL);
}

int main(void) {
    CHECK(strcmp(cere_error(), "") == 0);
    times();
    errors();
    memory();
    puts("all");
    return 0;
}
