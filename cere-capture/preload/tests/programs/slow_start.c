/* To be preloaded: threads take long from their start to their function, and use memory of this library meanwhile. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { SIZE = 4096 };
struct work {
  void *(*start)(void *);
  void *argument;
};
static struct work works[64];
static int count;
__attribute__((aligned(SIZE))) static volatile unsigned char touched[64 * SIZE];

static void *slowly(void *argument) {
  struct work *work = argument;
  struct timespec pause = {0, 30000000};
  nanosleep(&pause, NULL);
  touched[(work - works) * SIZE]++;
  rand();
  return work->start(work->argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  struct work *work = &works[count++ % 64];
  *work = (struct work){start, argument};
  return real(thread, attributes, slowly, work);
}
