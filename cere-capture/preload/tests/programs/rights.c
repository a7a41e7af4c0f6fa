/* What a program may have, and how its calls end: `rights WHAT`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long sum;
static volatile sig_atomic_t rung;
static sigjmp_buf back;
static ucontext_t here, there;
static char alternate[65536];

__attribute__((noinline)) static void add(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

/* More of a stack than 2 MiB. */
static void *deep(void *unused) {
    volatile char block[6 << 20];
    for (int i = 0; i < 6; i++) block[i << 20] = (char)i, sum += block[i << 20];
    return unused;
}

static void ring(int signal) { rung = signal; }

__attribute__((noinline)) static void sleep_on(int n) {
    for (int i = 0; i < n && !rung; i++) {
        sum += 1;
        sleep(20);
    }
}

static void caught(int signal) {
    sum += signal;
    siglongjmp(back, 1);
}

__attribute__((noinline)) static int fill(int n, volatile char *above) {
    volatile char block[3000];
    block[0] = block[2999] = 1;
    int below = n == 0 ? 0 : fill(n - 1, block);
    return below + block[2999] + above[0];
}

__attribute__((noinline)) static void overflow(int n) {
    for (int i = 0; i < n; i++) sum += fill(i * 1000, alternate);
}

static void overflow_once(void) {
    if (!sigsetjmp(back, 1)) overflow(10);
}

/* Maps at the same place again and again, and moves what it may only read. */
__attribute__((noinline)) static void map(int n, char *block) {
    for (int i = 0; i < n; i++) {
        char *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        page[i] = (char)i;
        sum += page[i];
        munmap(page, 65536);
        if (i == n / 2) {
            block = mremap(block, 65536, 131072, MREMAP_MAYMOVE);
            sum += block[4096] + block[65535];
        }
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "threads")) {
        pthread_t thread;
        pthread_create(&thread, NULL, deep, NULL);
        pthread_join(thread, NULL);
    }
    if (!strcmp(what, "vfork")) {
        int status = 0;
        pid_t child = vfork();
        if (child == 0) {
            execl("/nonexistent", "", (char *)NULL);
            _exit(127);
        }
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
    }
    if (!strcmp(what, "load")) {
        void *library = dlopen("libloaded.so", RTLD_NOW);
        sum += library != NULL;
    }
    if (!strcmp(what, "lock")) {
        int result = mlockall(MCL_CURRENT | MCL_ONFAULT);
        long locked = 0;
        char line[200];
        FILE *status = fopen("/proc/self/status", "r");
        while (fgets(line, sizeof line, status))
            if (sscanf(line, "VmLck: %ld", &locked) == 1) break;
        fclose(status);
        printf("locked %d\n", result == 0 && locked > 1 << 20);
    }
    if (!strcmp(what, "sleep")) {
        signal(SIGALRM, ring);
        alarm(1);
        sleep_on(3);
    }
    if (!strcmp(what, "guard")) {
        stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
        struct sigaction action = {.sa_handler = caught, .sa_flags = SA_ONSTACK};
        sigaltstack(&stack, NULL);
        sigaction(SIGSEGV, &action, NULL);
        char *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(block, 1 << 19, PROT_NONE);
        getcontext(&there);
        there.uc_stack.ss_sp = block + (1 << 19);
        there.uc_stack.ss_size = 1 << 19;
        there.uc_link = &here;
        makecontext(&there, overflow_once, 0);
        swapcontext(&here, &there);
    }
    if (!strcmp(what, "map")) {
        char *block = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(block, 7, 65536);
        mprotect(block, 65536, PROT_READ);
        mmap(block + 65536, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        map(9000, block);
    }
    add(10);
    printf("%ld\n", sum);
    return 0;
}
