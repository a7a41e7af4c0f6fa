// A child in the region.
//@ vary: N 2 5
//@ allowed: process
#include <sys/wait.h>
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit((int)(x + i) & 63);
    waitpid(child, &status, 0);
    x = mix(x, WEXITSTATUS(status));
  }
  return x;
}
