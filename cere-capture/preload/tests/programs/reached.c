/* Memory that the kernel or another thread fills while the program computes: `reached WHAT`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

static volatile long sum;
static char *area;

__attribute__((noinline)) static void before(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

/* Runs for so many milliseconds, without a call of the kernel. */
__attribute__((noinline)) static void work(long milliseconds) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (now = start; (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < milliseconds;) {
        sum += area ? area[0] & 1 : 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
}

/* A read is under way when `work` begins, and its bytes come meanwhile. */
static void uring(void) {
    struct io_uring_params p = {0};
    int ends[2], ring = (int)syscall(SYS_io_uring_setup, 4, &p);
    char *buffer = aligned_alloc(PAGE, PAGE);
    if (ring < 0 || pipe(ends)) exit(3);
    memset(buffer, 0, PAGE);
    int shared = PROT_READ | PROT_WRITE, kind = MAP_SHARED | MAP_POPULATE;
    char *queue = mmap(NULL, p.sq_off.array + p.sq_entries * 4 + p.cq_off.cqes + 4096, shared, kind, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, p.sq_entries * sizeof *entries, shared, kind, ring, IORING_OFF_SQES);
    entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = ends[0], .addr = (unsigned long)buffer, .len = 5};
    ((unsigned *)(queue + p.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(queue + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0);
    pid_t child = fork();
    if (child == 0) {
        usleep(30000);
        _exit(write(ends[1], "bytes", 5) != 5);
    }
    work(100);
    syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    struct io_uring_cqe *done = (struct io_uring_cqe *)(queue + p.cq_off.cqes);
    printf("%d %.5s\n", done->res, buffer);
    waitpid(child, NULL, 0);
}

static int faults;

static void *fill(void *page) {
    struct uffd_msg message;
    for (;;) {
        if (read(faults, &message, sizeof message) != sizeof message) continue;
        struct uffdio_copy copy = {.dst = message.arg.pagefault.address & -(unsigned long)PAGE, .src = (unsigned long)page, .len = PAGE};
        ioctl(faults, UFFDIO_COPY, &copy);
    }
    return NULL;
}

/* Another thread gives a page its content when it is touched first. */
static void userfault(void) {
    pthread_t filler;
    struct uffdio_api api = {.api = UFFD_API};
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (faults < 0) exit(3);
    ioctl(faults, UFFDIO_API, &api);
    char *page = aligned_alloc(PAGE, PAGE);
    memset(page, 1, PAGE);
    area = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(unsigned long)area, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (ioctl(faults, UFFDIO_REGISTER, &range)) exit(3);
    pthread_create(&filler, NULL, fill, page);
    usleep(10000);
    work(10);
    printf("%d\n", area[1]);
}

static void aio(void) {
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, 4, &context)) exit(3);
    work(10);
    syscall(SYS_io_destroy, context);
}

int main(int argc, char **argv) {
    before(10);
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "uring")) uring();
    if (!strcmp(what, "userfault")) userfault();
    if (!strcmp(what, "aio")) aio();
    before(10);
    puts("done");
    return 0;
}
