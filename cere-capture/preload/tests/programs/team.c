/* Threads of a team between two points: what each letter of the argument does, they do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 512, SIZE = 4096 };
__attribute__((aligned(SIZE))) static volatile unsigned char area[PAGES * SIZE];
static unsigned long total;
static int ends[2];

__attribute__((noinline)) static void begin(unsigned long *x, int n) {
  for (int i = 0; i < n; i++)
    *x = *x * 6364136223846793005u + 1442695040888963407u;
}

/* Each its own pages, rising: the first half of them is written. */
static void touches(void) {
#pragma omp parallel
  {
    int share = PAGES / omp_get_num_threads(), first = share * omp_get_thread_num();
    unsigned sum = 0;
    for (int i = 0; i < share; i++) {
      if (i < share / 2)
        area[(first + i) * SIZE] = 1;
      else
        sum += area[(first + i) * SIZE + 8];
    }
#pragma omp atomic
    total += sum + 1;
  }
}

static void shares(void) {
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < 2 * PAGES; i++) {
    int page = i * 7 % PAGES;
#pragma omp critical
    area[page * SIZE + 16]++;
  }
}

static void allocates(void) {
#pragma omp parallel for schedule(static, 1)
  for (int i = 0; i < 64; i++) {
    size_t size = i % 2 ? 4 << 20 : 3000;
    char *block = malloc(size);
    memset(block, i, size);
#pragma omp atomic
    total += block[size - 1];
    free(block);
  }
}

static void speaks(void) {
#pragma omp parallel for ordered schedule(static, 1)
  for (int i = 0; i < 16; i++) {
#pragma omp ordered
    {
      char line[32];
      int length = snprintf(line, sizeof line, "line %d\n", i);
      fflush(stdout);
      if (write(1, line, length) != length)
        abort();
    }
  }
}

static void reads(void) {
#pragma omp parallel for schedule(static, 1)
  for (int i = 0; i < 16; i++) {
    char text[64];
    int file = open("/proc/self/stat", O_RDONLY);
    ssize_t length = read(file, text, sizeof text);
    close(file);
#pragma omp atomic
    total += length;
  }
}

/* One waits for what another sends. */
static void waits(void) {
#pragma omp parallel num_threads(2)
  for (int round = 0; round < 4; round++) {
    char byte = 'x';
    if (omp_get_thread_num() == round % 2 && omp_get_num_threads() == 2) {
      if (read(ends[0], &byte, 1) != 1)
        abort();
    } else {
      struct timespec time = {0, 3000000};
      nanosleep(&time, NULL);
      if (omp_get_num_threads() == 2 && write(ends[1], &byte, 1) != 1)
        abort();
    }
#pragma omp barrier
  }
}

/* More threads than before. */
static void grows(void) {
#pragma omp parallel num_threads(6)
#pragma omp atomic
  total += area[omp_get_thread_num() * SIZE] + 1;
}

/* A team that no region tells of. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void works(const int *thread, const int *bound, void *unused) {
  (void)thread, (void)bound, (void)unused;
  for (int i = 0; i < 400; i++) {
    pthread_mutex_lock(&mutex);
    total += ++area[i % PAGES * SIZE + 32];
    pthread_mutex_unlock(&mutex);
  }
  char *block = malloc(1 << 20);
  memset(block, 1, 1 << 20);
  free(block);
}
static void hides(void) {
  struct { int a[4]; const char *place; } where = {{0, 2, 0, 0}, ";unknown;unknown;0;0;;"};
  void (*fork_call)(void *, int, void (*)(const int *, const int *, void *), ...);
  *(void **)&fork_call = dlsym(RTLD_DEFAULT, "__kmpc_fork_call");
  fork_call(&where, 1, works, NULL);
}

/* Signals arrive from now on. */
static volatile sig_atomic_t alarms;
static void on_alarm(int number) { alarms += number; }
static void interrupts(long microseconds) {
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static __attribute__((noinline)) void wanted(void) {
#pragma omp parallel for reduction(+ : total)
  for (int i = 0; i < PAGES; i++)
    total += area[i * SIZE] + area[i * SIZE + 16];
}

int main(int argc, char **argv) {
  if (argc != 2 || pipe(ends) != 0)
    return 1;
  unsigned long x = 1;
  memset((void *)area, 0, sizeof area);
  begin(&x, 100);
  for (const char *step = argv[1]; *step; step++)
    switch (*step) {
    case 't': touches(); break;
    case 's': shares(); break;
    case 'a': allocates(); break;
    case 'p': speaks(); break;
    case 'r': reads(); break;
    case 'w': waits(); break;
    case 'g': grows(); break;
    case 'h': hides(); break;
    case 'i': interrupts(2000); break;
    }
  interrupts(0);
  wanted();
  printf("%lx %lu\n", x, total);
  return 0;
}
