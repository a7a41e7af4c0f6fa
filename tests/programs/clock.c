// Regions that stop by the clock, keep what it says, or keep who and where the process is: a replay answers as the
// captured invocation was answered, in each repetition and under other flags.
//@ levels: -O0 -g ; -O2
//@ capture: *@clock.c*
//@ codelets: 6
//@ flags: -O0 ; -O3 -march=native
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static long work(long x) {
    for (volatile int i = 0; i < 20000; i++) x = x * 5 + i;
    return x;
}

static struct {
    long rounds, sum;
    double last;
} solver;

/* As a solver with a limit on its time: the deadline lies before the region. */
__attribute__((noinline)) static void until(double deadline) {
    while (now() < deadline) {
        solver.sum = work(solver.sum);
        solver.rounds++;
    }
    solver.last = now();
}

static struct {
    struct timespec clocks[8], resolution;
    struct timeval day;
    struct timezone zone;
    time_t seconds, called;
    clock_t processor, ticks;
    struct tms times;
    struct rusage usage;
    struct timespec utc;
} kept[3];
static time_t (*volatile pointer)(time_t *) = time;

__attribute__((noinline)) static void readings(int n) {
    for (int i = 0; i < n; i++) {
        for (int clock = 0; clock < 8; clock++) clock_gettime(clock, &kept[i].clocks[clock]);
        clock_getres(CLOCK_MONOTONIC_COARSE, &kept[i].resolution);
        gettimeofday(&kept[i].day, i ? &kept[i].zone : NULL);
        kept[i].seconds = time(i ? &kept[i].called : NULL);
        kept[i].called += pointer(NULL);
        kept[i].processor = clock();
        kept[i].ticks = times(&kept[i].times);
        getrusage(RUSAGE_SELF, &kept[i].usage);
        timespec_get(&kept[i].utc, TIME_UTC);
    }
}

static struct {
    pid_t process, parent, thread, raw;
    uid_t user;
    unsigned processor, node;
    struct timespec direct;
    struct utsname system;
    unsigned char bytes[20];
    int drawn;
} known[3];

__attribute__((noinline)) static void numbers(int n) {
    unsigned seed = 1;
    for (int i = 0; i < n; i++) {
        known[i].process = getpid();
        known[i].parent = getppid();
        known[i].thread = gettid();
        known[i].raw = syscall(SYS_getpid);
        known[i].user = getuid();
        getcpu(&known[i].processor, &known[i].node);
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &known[i].direct);
        uname(&known[i].system);
        if (getrandom(known[i].bytes, 7 + i, 0) != 7 + i) abort();
        seed += time(NULL) + known[i].direct.tv_nsec + known[i].bytes[6];
        known[i].drawn = rand_r(&seed);
    }
}

/* Nobody asks before the captured invocation of the outer loop does. */
__attribute__((noinline)) static long nested(int n) {
    long later = 0;
    for (int i = 0; i < n; i++) {
        double before = now();
        for (int k = 0; k < 3; k++) later += now() >= before;
        solver.last = now();
    }
    return later;
}

/* The time stamp counter. */
static struct {
    unsigned long before, after, random;
    unsigned processor;
} counted[4];

__attribute__((noinline)) static void counter(int n) {
    for (int i = 0; i < n; i++) {
        counted[i].before = __builtin_ia32_rdtsc();
        for (int k = 0; k < 100; k++) counted[i].random = counted[i].random * 5 + counted[i].before;
        counted[i].after = __builtin_ia32_rdtscp(&counted[i].processor);
    }
}

int main(void) {
    until(now() + 0.3);
    readings(3);
    numbers(3);
    counter(4);
    printf("%d %ld\n", solver.last > 0 && kept[2].seconds > 0, nested(4));
    printf("%d\n", counted[0].before < counted[3].after);
    printf("%d %d\n", known[2].process == getpid(), known[1].user == getuid());
}
