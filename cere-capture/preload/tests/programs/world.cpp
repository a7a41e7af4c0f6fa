// What a program does between two regions while pages are traced: `world WHAT`.
#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

extern char **environ;
static long sum;
extern "C" {
volatile char area[64][4096] __attribute__((aligned(4096)));
}
static jmp_buf back;
static volatile sig_atomic_t ticks;
static int *volatile nowhere;

__attribute__((noinline)) static void begin(int n) {
    for (int i = 0; i < n; i++) sum += i;
}

__attribute__((noinline)) static void middle(int n) {
    for (int i = 0; i < n; i++) sum += area[i][0];
}

__attribute__((noinline)) static void wanted(int n) {
    for (int i = 0; i < n; i++) sum += area[i][0] + i;
}

static void touch(int from, int to) {
    for (int i = from; i < to; i++) area[i][16] += 1;
}

static void files() {
    char name[] = "/tmp/cere-world-XXXXXX";
    int fd = mkstemp(name);
    std::vector<char> large(6 << 20, 'x');
    sum += write(fd, large.data(), large.size());
    struct iovec parts[2] = {{large.data(), 100000}, {large.data() + 300000, 100000}};
    sum += writev(fd, parts, 2);
    lseek(fd, 4096, SEEK_SET);
    std::vector<char> other(6 << 20);
    sum += read(fd, other.data(), other.size());
    for (char c : other) sum += c;
    char *map = (char *)mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int i = 0; i < 1 << 20; i += 4096) map[i] = 'y', sum += map[i + 1];
    msync(map, 1 << 20, MS_SYNC);
    munmap(map, 1 << 20);
    char small[300];
    sum += pread(fd, small, 300, 4090);
    for (char c : small) sum += c;
    close(fd);
    FILE *file = fopen(name, "r+");
    for (int i = 0; i < 1000; i++) sum += fgetc(file);
    fseek(file, 0, SEEK_SET);
    fprintf(file, "%ld\n", sum);
    fclose(file);
    file = fopen(name, "r");
    long read_back = 0;
    sum += fscanf(file, "%ld", &read_back) + read_back % 7;
    fclose(file);
    sum += fopen("/no/such/file", "r") == nullptr;
    sum += read(-1, small, 10) + write(1, nullptr, 0) + access(name, R_OK);
    sum += write(fd + 100, (void *)8, 10);
    unlink(name);
    int ends[2];
    sum += pipe(ends);
    sum += write(ends[1], "pipe", 4) + read(ends[0], small, 4) + small[1];
    printf("%ld\n", sum);
    fflush(stdout);
}

static void processes() {
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            touch(0, 30);
            middle(5);
            _exit(i + area[3][16]);
        }
        int status = 0;
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
    }
    sum += system("exit 5");
    pid_t spawned;
    char shell[] = "/bin/sh", option[] = "-c", command[] = "echo spawned";
    char *arguments[] = {shell, option, command, nullptr};
    int status = 0;
    sum += posix_spawn(&spawned, "/bin/sh", nullptr, nullptr, arguments, environ);
    waitpid(spawned, &status, 0);
    FILE *pipe = popen("echo 42", "r");
    int answer = 0;
    sum += fscanf(pipe, "%d", &answer) + answer;
    pclose(pipe);
}

static void several_threads() {
    std::vector<long> results(4);
    std::vector<std::thread> all;
    for (int i = 0; i < 4; i++)
        all.emplace_back([&results, i] {
            for (int j = 0; j < 100000; j++) results[i] += area[j % 64][i] + i;
        });
    touch(0, 40);
    for (auto &thread : all) thread.join();
    for (long r : results) sum += r;
}

static void tick(int) {
    ticks = ticks + 1;
    area[40][ticks % 4096] = 0;
}

static void signals() {
    struct itimerval every = {{0, 1000}, {0, 1000}};
    struct sigaction action = {};
    action.sa_handler = tick;
    sigfillset(&action.sa_mask);
    sigaction(SIGALRM, &action, nullptr);
    setitimer(ITIMER_REAL, &every, nullptr);
    while (ticks < 20) touch(0, 40), middle(3);
    every = {};
    setitimer(ITIMER_REAL, &every, nullptr);
    sigset_t set, old;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old);
    signal(SIGUSR1, tick);
    int before = ticks;
    raise(SIGUSR1);
    sum += ticks - before;
    sigprocmask(SIG_SETMASK, &old, nullptr);
    sum += 10 * (ticks - before);
    stack_t stack = {};
    stack.ss_sp = malloc(65536), stack.ss_size = 65536;
    sigaltstack(&stack, nullptr);
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(SIGUSR2, &action, nullptr);
    middle(3);
    raise(SIGUSR2), raise(SIGUSR2);
    sum += 100 * (ticks - before);
    alarm(1);
    pause();
    sum += 1000 * (ticks - before);
}

static void leave(int) { siglongjmp(back, 7); }

__attribute__((noinline)) static int deep(int n) {
    volatile char frame[1000];
    frame[n % 1000] = 1;
    return n == 0 ? frame[0] : deep(n - 1) + frame[n % 1000];
}

static void jumps() {
    volatile int count = 0;
    if (setjmp(back) < 5) {
        touch(0, 30);
        deep(50);
        count = count + 1;
        longjmp(back, count);
    }
    sum += count;
    signal(SIGSEGV, leave);
    if (int code = sigsetjmp(back, 1)) sum += code;
    else *nowhere = 1;
    middle(3);
    if (int code = sigsetjmp(back, 1)) sum += 10 * code;
    else *(volatile int *)(area + 200000) = 1;
    signal(SIGSEGV, SIG_DFL);
}

static void exceptions() {
    for (int i = 0; i < 200; i++) try {
            touch(i % 60, i % 60 + 3);
            if (i % 3 == 0) throw std::runtime_error(std::string(i, 'x'));
            std::vector<int>(3).at(i);
        } catch (const std::runtime_error &e) {
            sum += strlen(e.what());
        } catch (const std::out_of_range &) {
            sum += 1;
        }
}

static void libraries() {
    for (int i = 0; i < 3; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        auto cosine = (double (*)(double))dlsym(library, "cos");
        sum += (long)(1000 * cosine(i));
        dlclose(library);
        void *other = dlopen("libresolv.so.2", RTLD_LAZY);
        sum += other != nullptr;
        if (other) dlclose(other);
        sum += dlopen("libno-such-thing.so", RTLD_NOW) == nullptr;
    }
}

static void memory() {
    std::map<int, std::string> all;
    for (int i = 0; i < 3000; i++) all[i * 7919 % 3011] = std::string(i % 300, 'a' + i % 26);
    for (auto &[key, text] : all) sum += key * text.size();
    std::vector<void *> blocks;
    for (int i = 0; i < 120; i++) {
        size_t size = 1000 + i * 4000;
        char *block = (char *)malloc(size);
        block[0] = block[size - 1] = i;
        block = (char *)realloc(block, size * 2);
        sum += block[size - 1];
        blocks.push_back(block);
        if (i % 3 == 0) free(blocks[i / 3]), blocks[i / 3] = nullptr;
    }
    for (void *block : blocks) free(block);
    char *map = (char *)mmap(nullptr, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1 << 22; i += 4096) map[i] = i >> 12;
    mprotect(map, 1 << 20, PROT_READ);
    for (int i = 0; i < 1 << 20; i += 4096) sum += map[i];
    map = (char *)mremap(map + (1 << 21), 1 << 21, 1 << 23, MREMAP_MAYMOVE);
    for (int i = 0; i < 1 << 21; i += 4096) sum += map[i];
    madvise(map, 1 << 20, MADV_DONTNEED);
    for (int i = 0; i < 1 << 20; i += 4096) sum += map[i];
    munmap(map, 1 << 23);
    sbrk(1 << 20);
    char *top = (char *)sbrk(0);
    top[-1] = 3, sum += top[-1];
}

static void clocks() {
    struct timespec now, nap = {0, 2000000};
    for (int i = 0; i < 5; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        nanosleep(&nap, nullptr);
        sum += now.tv_sec >= 0;
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    begin(3);
    touch(0, 10);
    printf("%s\n", what);
    if (!strcmp(what, "files")) files();
    if (!strcmp(what, "processes")) processes();
    if (!strcmp(what, "threads")) several_threads();
    if (!strcmp(what, "signals")) signals();
    if (!strcmp(what, "jumps")) jumps();
    if (!strcmp(what, "exceptions")) exceptions();
    if (!strcmp(what, "libraries")) libraries();
    if (!strcmp(what, "memory")) memory();
    if (!strcmp(what, "clocks")) clocks();
    if (!strcmp(what, "deep")) sum += deep(6000);
    if (!strcmp(what, "crash")) *nowhere = 1;
    if (!strcmp(what, "exit")) exit(6);
    if (!strcmp(what, "quit")) _exit(7);
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "kill")) kill(getpid(), SIGTERM);
    middle(4);
    touch(20, 30);
    wanted(40);
    printf("%ld\n", sum);
    return 3;
}
