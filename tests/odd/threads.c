// Another thread that waits while the loop runs; locks that know their owner.
//@ vary: N 50 500
//@ pick: KIND PTHREAD_MUTEX_NORMAL | PTHREAD_MUTEX_RECURSIVE | PTHREAD_MUTEX_ERRORCHECK
#include <pthread.h>
static pthread_mutex_t f@_lock;
static pthread_cond_t f@_wake = PTHREAD_COND_INITIALIZER;
static int f@_done;
static pthread_t f@_owner;
static void *f@_wait(void *unused) {
  pthread_mutex_lock(&f@_lock);
  while (!f@_done) pthread_cond_wait(&f@_wake, &f@_lock);
  pthread_mutex_unlock(&f@_lock);
  return unused;
}
word f@(word x) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, $KIND);
  pthread_mutex_init(&f@_lock, &kind);
  pthread_mutex_t own;
  pthread_mutex_init(&own, &kind);
  f@_done = 0;
  pthread_t thread;
  pthread_create(&thread, 0, f@_wait, 0);
  for (int i = 0; i < $N; i++) {
    pthread_mutex_lock(&own);
    f@_owner = pthread_self();
    x = mix(x, pthread_equal(f@_owner, pthread_self()) + i);
    pthread_mutex_unlock(&own);
  }
  pthread_mutex_lock(&f@_lock);
  f@_done = 1;
  pthread_cond_signal(&f@_wake);
  pthread_mutex_unlock(&f@_lock);
  pthread_join(thread, 0);
  return x;
}
