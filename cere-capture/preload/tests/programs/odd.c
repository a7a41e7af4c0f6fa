/* Programs that confine themselves, or that live by their own signal handlers: `odd WHAT`. Each says what it sees of itself. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 16

static double values[3000];
static char *memory;
static sigjmp_buf back;
static volatile int hits, code, signals, steps;
static volatile long offset;

/* No fault, no call: captured whatever surrounds it. */
__attribute__((noinline)) static double sweep(void) {
    double sum = 0;
    for (int i = 1; i < 3000; i++) sum += values[i] = values[i - 1] * 0.25 + values[i] * 0.7 + 1;
    return sum;
}

/* One write a page. */
__attribute__((noinline)) static int touch(char *from, int pages) {
    int sum = 0;
    for (int i = 0; i < pages; i++) sum += ++*(volatile char *)(from + i * PAGE);
    return sum;
}

static void count(int signal) {
    (void)signal;
    signals++;
}

static void jump(int signal) {
    (void)signal;
    hits++;
    siglongjmp(back, 1);
}

/* Opens the page, like a collector's barrier or lazy memory. */
static void barrier(int signal, siginfo_t *info, void *context) {
    sigset_t mask;
    (void)context;
    offset = (char *)info->si_addr - memory;
    if (offset < 0 || offset >= PAGES * PAGE) _exit(9);
    hits++;
    code = info->si_code;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    signals += sigismember(&mask, signal) + 10 * sigismember(&mask, SIGUSR1);
    mprotect(memory + offset / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);
    /* A fault in the handler itself. */
    if (steps-- > 0) memory[(offset / PAGE + 1) % PAGES * PAGE]++;
}

static void skip(int signal, siginfo_t *info, void *context) {
    (void)signal;
    hits++;
    code = info->si_code;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += signal == SIGTRAP ? 0 : 2;
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigaddset(&action.sa_mask, SIGUSR1);
    if (sigaction(signal, &action, NULL)) exit(20);
}

static void closed(int rights) {
    memory = mmap(NULL, PAGES * PAGE, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(21);
}

static long eat(long n) {
    volatile char room[PAGE];
    for (int i = 0; i < PAGE; i += 64) room[i] = (char)n;
    return n > 1000000 ? 0 : eat(n + 1) + room[64];
}

static void limit(int resource, rlim_t current, rlim_t most) {
    struct rlimit limit = {current, most};
    if (setrlimit(resource, &limit)) exit(22);
}

/* Lines of a file of the process, where it can be read. */
static void show(const char *path, const char *starts[]) {
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (fgets(line, sizeof line, file))
        for (int i = 0; starts[i]; i++)
            if (!strncmp(line, starts[i], strlen(starts[i]))) fputs(line, stdout);
    fclose(file);
}

static void names(const char *path) {
    int found = 0;
    DIR *directory = opendir(path);
    while (directory && readdir(directory)) found++;
    if (directory) closedir(directory);
    printf("%s %d\n", path, found);
}

/* What the program sees of itself. */
static void report(void) {
    static const int resources[] = {RLIMIT_AS, RLIMIT_CORE, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_MEMLOCK,
                                    RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_STACK};
    static const char *lines[] = {"SigBlk", "SigIgn", "SigCgt", "SigPnd", "Threads", "Uid", "NoNewPrivs", "Seccomp:",
                                  "CapEff", "Umask", NULL};
    sigset_t mask;
    stack_t stack;
    for (unsigned i = 0; i < sizeof resources / sizeof *resources; i++) {
        struct rlimit limit;
        getrlimit(resources[i], &limit);
        printf("%ld %ld, ", (long)limit.rlim_cur, (long)limit.rlim_max);
    }
    for (int i = 1; i < 32; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action)) continue;
        int kind = action.sa_handler == SIG_DFL ? 0 : action.sa_handler == SIG_IGN ? 1 : 2;
        if (kind) printf("%d:%d:%x ", i, kind, action.sa_flags & ~0x4000000);
    }
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int i = 1; i < 32; i++)
        if (sigismember(&mask, i) == 1) printf("blocks %d ", i);
    sigaltstack(NULL, &stack);
    int waited = waitpid(-1, NULL, WNOHANG);
    printf("\nstack %d %zu, waits %d %d, program %s\n", stack.ss_flags, stack.ss_size, waited, errno,
           program_invocation_short_name);
    show("/proc/self/status", lines);
    names("/proc/self/fd");
    names("/proc/self/task");
}

static void landlock(void) {
    struct landlock_ruleset_attr all = {.handled_access_fs = (1 << 13) - 1};
    int ruleset = syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (ruleset < 0 || syscall(SYS_landlock_restrict_self, ruleset, 0)) puts("no landlock");
    close(ruleset);
}

static void surround(const char *what) {
    char directory[] = "/tmp/odd.XXXXXX";
    if (!strcmp(what, "fsize")) limit(RLIMIT_FSIZE, 0, 0);
    if (!strcmp(what, "fsize-core")) limit(RLIMIT_FSIZE, 8192, 8192), limit(RLIMIT_CORE, 0, 0);
    if (!strcmp(what, "nofile")) limit(RLIMIT_NOFILE, 4, 4);
    if (!strcmp(what, "nofile0")) limit(RLIMIT_NOFILE, 0, 0);
    if (!strcmp(what, "stack")) limit(RLIMIT_STACK, 1 << 20, 1 << 20);
    if (!strcmp(what, "cpu")) limit(RLIMIT_CPU, 100, 200);
    if (!strcmp(what, "memlock")) limit(RLIMIT_MEMLOCK, 0, 0);
    if (!strcmp(what, "nproc")) limit(RLIMIT_NPROC, 1, 1);
    if (!strcmp(what, "user") && setuid(65534)) exit(30);
    if (!strcmp(what, "user-as") && (setgid(65534) || setuid(65534))) exit(30);
    if (!strcmp(what, "root") && (chroot(mkdtemp(directory)) || chdir("/"))) exit(31);
    if (!strcmp(what, "close-all")) close_range(3, ~0u, 0);
    if (!strcmp(what, "close-by-one"))
        for (int i = 3; i < 4096; i++) close(i);
    if (!strcmp(what, "descriptors"))
        while (open("/dev/null", O_RDONLY) >= 0) {}
    if (!strcmp(what, "landlock")) landlock();
    if (!strcmp(what, "directory") && (chdir(mkdtemp(directory)) || rmdir(directory))) exit(32);
    if (!strcmp(what, "umask")) umask(0777);
    if (!strcmp(what, "namespace") && unshare(CLONE_NEWUSER | CLONE_NEWNS)) puts("no namespace");
    if (!strcmp(what, "dumpable")) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (!strcmp(what, "space") || !strcmp(what, "user-as") || !strcmp(what, "data")) {
        limit(strcmp(what, "data") ? RLIMIT_AS : RLIMIT_DATA, 1 << 30, 1 << 30);
        void *small = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void *large = mmap(NULL, 1100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("%d %d\n", small != MAP_FAILED, large != MAP_FAILED);
    }
}

static void fault(const char *what) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    for (volatile int round = 0; round < 3; round++) {
        if (!strcmp(what, "guard")) {
            closed(PROT_READ | PROT_WRITE);
            madvise(memory + 3 * PAGE, 2 * PAGE, 102);
            signal(SIGSEGV, jump);
            for (volatile int i = 0; i < PAGES; i++)
                if (!sigsetjmp(back, 1)) touch(memory + i * PAGE, 1);
        } else if (!strcmp(what, "barrier") || !strcmp(what, "barrier-here")) {
            closed(PROT_READ);
            handle(SIGSEGV, barrier, strcmp(what, "barrier") ? 0 : SA_ONSTACK);
            touch(memory, PAGES);
        } else if (!strcmp(what, "lazy")) {
            closed(PROT_NONE);
            handle(SIGSEGV, barrier, SA_NODEFER);
            steps = 3;
            touch(memory, PAGES);
        } else if (!strcmp(what, "once")) {
            closed(PROT_READ);
            handle(SIGSEGV, barrier, SA_RESETHAND);
            touch(memory, 1);
        } else if (!strcmp(what, "overflow")) {
            struct sigaction action = {.sa_handler = jump, .sa_flags = SA_ONSTACK | SA_NODEFER};
            sigaction(SIGSEGV, &action, NULL);
            if (!sigsetjmp(back, 1)) printf("%ld\n", eat(0));
        } else if (!strcmp(what, "bus")) {
            int file = memfd_create("odd", 0);
            if (ftruncate(file, PAGE)) exit(33);
            memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            close(file);
            signal(SIGBUS, jump);
            for (volatile int i = 0; i < 3; i++)
                if (!sigsetjmp(back, 1)) touch(memory + i * PAGE, 1);
        } else if (!strcmp(what, "traps")) {
            handle(SIGTRAP, skip, 0);
            handle(SIGILL, skip, 0);
            for (int i = 0; i < 3; i++) {
                __asm__ volatile("int3");
                __asm__ volatile("ud2");
            }
        } else if (!strcmp(what, "code")) {
            /* mov eax, round; ret */
            unsigned char text[] = {0xb8, (unsigned char)round, 0, 0, 0, 0xc3};
            if (!memory) closed(PROT_READ | PROT_WRITE);
            mprotect(memory, PAGE, PROT_READ | PROT_WRITE);
            for (unsigned i = 0; i < sizeof text; i++) memory[i] = text[i];
            mprotect(memory, PAGE, PROT_READ | PROT_EXEC);
            for (int i = 0; i < 3; i++) hits += ((int (*)(void))memory)();
        }
        printf("%.9g\n", sweep());
        printf("%d %d %ld %d\n", hits, code, offset, strcmp(what, "ticks") ? signals : 0);
    }
}

static void start(const char *what, char **arguments) {
    char *again[] = {arguments[0], "plain", NULL};
    volatile int ended = 0;
    int status = 0;
    pid_t child = 0;
    signal(SIGCHLD, count);
    if (!strcmp(what, "fork"))
        for (int i = 0; i < 3; i++)
            if (!fork()) {
                double sum = sweep();
                _exit(sum > 0 ? i : 100);
            }
    if (!strcmp(what, "vfork") && !(child = vfork())) {
        execl("/bin/sh", "sh", "-c", "exit 3", NULL);
        _exit(127);
    }
    if (!strcmp(what, "spawn")) posix_spawn(&child, arguments[0], NULL, NULL, again, environ);
    if (!strcmp(what, "system")) printf("%d\n", system("exit 4"));
    for (;;) {
        child = waitpid(-1, &status, 0);
        if (child < 0 && errno == EINTR) continue;
        if (child < 0) break;
        ended += 1000 + WEXITSTATUS(status);
    }
    /* How many ticks have come by now is chance. */
    printf("%d %d %d\n", ended, errno, signals > 0 && strcmp(what, "ticks"));
    fflush(stdout);
    if (!strcmp(what, "exec")) execv(arguments[0], again);
}

int main(int count_of, char **arguments) {
    const char *what = count_of > 1 ? arguments[1] : "plain";
    struct itimerval every = {{0, 2000}, {0, 2000}};
    if (!strcmp(what, "ticks")) {
        signal(SIGPROF, count);
        setitimer(ITIMER_PROF, &every, NULL);
    }
    for (int i = 0; i < 3000; i++) values[i] = i;
    report();
    printf("%.9g\n", sweep());
    fflush(stdout);
    surround(what);
    for (int i = 0; i < 3; i++) printf("%.9g\n", sweep());
    fault(what);
    start(what, arguments);
    if (!strcmp(what, "ticks")) {
        while (signals < 3) sweep();
        setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    }
    report();
    fflush(stdout);
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(what, "crash")) signal(SIGSEGV, SIG_DFL), touch((char *)16, 1);
    return 5;
}
