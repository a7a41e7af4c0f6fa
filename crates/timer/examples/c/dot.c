/* What the context of a timing changes: the speed of a dot product, and which of four checksums is the fastest.
 *
 *     make run
 */
#include <cere.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program if a function failed. */
static void check(int code) {
    if (code != CERE_OK) {
        fprintf(stderr, "dot: %s\n", cere_error());
        exit(1);
    }
}

static cere_timer *new_timer(void) {
    cere_timer *timer = cere_timer_new();
    check(timer ? CERE_OK : CERE_MEMORY);
    return timer;
}

static volatile double sink;

static void dot(void *const *operands, void *context) {
    const double *x = operands[0], *y = operands[1];
    double sums[4] = {0, 0, 0, 0};
    for (size_t n = *(size_t *)context, i = 0; i < n; i += 4)
        for (size_t j = 0; j < 4; j++)
            sums[j] += x[i + j] * y[i + j];
    sink = sums[0] + sums[1] + sums[2] + sums[3];
}

/* Mflop/s of a dot product of n doubles with both vectors in a state. */
static double speed(size_t n, int state) {
    cere_timer *timer = new_timer();
    cere_result found;
    check(cere_timer_operand(timer, 8 * n, 64, 0, state));
    check(cere_timer_operand(timer, 8 * n, 64, 0, state));
    check(cere_timer_time(timer, dot, &n, &found));
    cere_timer_free(timer);
    return 2e-6 * (double)n / found.seconds;
}

/* CRC-32 of a message of 64 bytes, continued from `crc`, with the help of a table. */
enum { MESSAGE = 64 };
typedef uint32_t checksum(uint32_t crc, const uint32_t *table, const uint8_t *message);

/* One bit of the message. */
static uint32_t bit(uint32_t crc) { return crc >> 1 ^ (UINT32_C(0xedb88320) & -(crc & 1)); }

static uint32_t bits(uint32_t crc, const uint32_t *table, const uint8_t *message) {
    (void)table;
    for (int i = 0; i < MESSAGE; i++) {
        crc ^= message[i];
        for (int j = 0; j < 8; j++)
            crc = bit(crc);
    }
    return crc;
}

static uint32_t nibbles(uint32_t crc, const uint32_t *table, const uint8_t *message) {
    for (int i = 0; i < MESSAGE; i++) {
        crc ^= message[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

static uint32_t bytes(uint32_t crc, const uint32_t *table, const uint8_t *message) {
    for (int i = 0; i < MESSAGE; i++)
        crc = crc >> 8 ^ table[(crc ^ message[i]) & 255];
    return crc;
}

/* Eight bytes at once, by eight tables (Kounavis and Berry, 2005). */
static uint32_t slices(uint32_t crc, const uint32_t *table, const uint8_t *message) {
    for (int i = 0; i < MESSAGE; i += 8) {
        uint32_t next = 0;
        for (int j = 0; j < 8; j++) {
            uint8_t byte = message[i + j] ^ (j < 4 ? (uint8_t)(crc >> 8 * j) : 0);
            next ^= table[(7 - j) * 256 + byte];
        }
        crc = next;
    }
    return crc;
}

static const struct kernel {
    const char *name;
    checksum *function;
    size_t width; /* entries of one table */
    size_t tables;
} kernels[] = {
    {"bits, no table", bits, 1, 1},
    {"nibbles, 64 B", nibbles, 16, 1},
    {"bytes, 1 KiB", bytes, 256, 1},
    {"slices, 8 KiB", slices, 256, 8},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Entry i of table r is the checksum of i with r bytes of zeros behind it. */
static void write_table(void *operand, size_t size, void *context) {
    const struct kernel *kernel = context;
    (void)size;
    for (size_t at = 0; at < kernel->width * kernel->tables; at++) {
        uint32_t crc = (uint32_t)(at % kernel->width);
        for (size_t width = kernel->width; width > 1; width /= 2)
            crc = bit(crc);
        for (size_t zeros = 8 * (at / kernel->width); zeros > 0; zeros--)
            crc = bit(crc);
        ((uint32_t *)operand)[at] = crc;
    }
}

static void write_message(void *operand, size_t size, void *context) {
    (void)context;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)operand)[i] = (uint8_t)(151 * (i + 1));
}

struct call {
    const struct kernel *kernel;
    uint32_t crc;
};

static void continue_checksum(void *const *operands, void *context) {
    struct call *call = context;
    call->crc = call->kernel->function(call->crc, operands[0], operands[1]);
}

/* Times a checksum of a message that has just arrived, with the table in a state. */
static cere_result time_checksum(const struct kernel *kernel, int state) {
    cere_timer *timer = new_timer();
    struct call call = {kernel, UINT32_MAX};
    cere_result found;
    size_t size = 4 * kernel->width * kernel->tables;
    check(cere_timer_operand_filled(timer, size, 64, 0, state, write_table, (void *)kernel));
    check(cere_timer_operand_filled(timer, MESSAGE, 64, 0, CERE_WARM, write_message, NULL));
    check(cere_timer_time(timer, continue_checksum, &call, &found));
    cere_timer_free(timer);
    return found;
}

/* All kernels give the same checksum; else the program ends. */
static void check_checksums(void) {
    uint8_t message[MESSAGE];
    uint32_t table[8 * 256], first = 0;
    write_message(message, sizeof message, NULL);
    for (int i = 0; i < KERNELS; i++) {
        write_table(table, sizeof table, (void *)&kernels[i]);
        uint32_t crc = kernels[i].function(UINT32_MAX, table, message);
        first = i == 0 ? crc : first;
        if (crc != first) {
            fprintf(stderr, "dot: %s gives %08" PRIx32 ", not %08" PRIx32 "\n", kernels[i].name, crc, first);
            exit(1);
        }
    }
}

int main(void) {
    cere_result warm[KERNELS], cold[KERNELS];
    int in = 0, out = 0;
    check_checksums();
    printf("Dot product, Mflop/s\n\n%9s %9s %9s %7s\n", "n", "warm", "cold", "ratio");
    for (size_t n = 128; n <= 2097152; n *= 4) {
        double in_cache = speed(n, CERE_WARM), flushed = speed(n, CERE_COLD);
        printf("%9zu %9.0f %9.0f %7.2f\n", n, in_cache, flushed, in_cache / flushed);
    }
    printf("\nCRC-32 of 64 bytes, ns\n\n%-16s %9s %9s\n", "kernel", "warm", "cold");
    for (int i = 0; i < KERNELS; i++) {
        warm[i] = time_checksum(&kernels[i], CERE_WARM);
        cold[i] = time_checksum(&kernels[i], CERE_COLD);
        printf("%-16s %9.1f %9.1f\n", kernels[i].name, warm[i].seconds * 1e9, cold[i].seconds * 1e9);
        in = warm[i].seconds < warm[in].seconds ? i : in;
        out = cold[i].seconds < cold[out].seconds ? i : out;
    }
    printf("\nWarm timing picks \"%s\", cold timing \"%s\".\n", kernels[in].name, kernels[out].name);
    /* Only what lies outside the noise of both is claimed. */
    if (cold[in].minimum > cold[out].upper)
        printf("Callers whose table is cold lose a factor of %.2f by the first.\n", cold[in].seconds / cold[out].seconds);
    else
        printf("On this machine the context does not change the choice.\n");
    return 0;
}
