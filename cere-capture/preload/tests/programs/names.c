/* Its own functions have names of libc's, and do something else. */
#include <stdio.h>

long calls;

#define OWN(name) \
    long own_##name(long a) __asm__(#name); \
    __attribute__((noinline)) long own_##name(long a) { calls++; return a + 7; }
#define ALL \
    OWN(read) OWN(write) OWN(open) OWN(open64) OWN(openat) OWN(close) OWN(mmap) OWN(mmap64) OWN(munmap) OWN(madvise) \
    OWN(mlock2) OWN(getenv) OWN(secure_getenv) OWN(lseek) OWN(lseek64) OWN(fstat) OWN(fstat64) OWN(stat) OWN(stat64) \
    OWN(statx) OWN(rename) OWN(unlink) OWN(readlink) OWN(realpath) OWN(opendir) OWN(readdir64) OWN(closedir) OWN(dirfd) \
    OWN(poll) OWN(writev) OWN(getpid) OWN(gettid) OWN(ftruncate64) OWN(getrandom) OWN(getrlimit) OWN(syscall) \
    OWN(sched_yield) OWN(clock_nanosleep) OWN(getcwd) OWN(dl_iterate_phdr) OWN(pthread_self) OWN(pthread_key_create) \
    OWN(pthread_getattr_np) OWN(pthread_setspecific) OWN(strlen) OWN(bcmp) OWN(__errno_location)
ALL

#undef OWN
#define OWN(name) own_##name,
static long (*const own[])(long) = {ALL};

__attribute__((noinline)) static long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += own[i % (sizeof own / sizeof *own)](i);
    return sum;
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 5; i++) sum += work(1000);
    printf("%ld %ld\n", sum, calls);
    return 0;
}
