/* Cuts its own profile short: the pages beyond the cut are what those are that a full disk has no room for, a SIGBUS for who
 * writes them. Then one loop runs 5000 times, another one 10 times. */
#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static unsigned long often(unsigned long x) {
  for (int i = 0; i < 999; i++)
    x = x * 6364136223846793005u + 1442695040888963407u;
  return x;
}

__attribute__((noinline)) static unsigned long seldom(unsigned long x) {
  for (int i = 0; i < 999; i++)
    x = (x ^ x >> 7) * 6364136223846793005u;
  return x;
}

static int cut(long size) {
  char *plan = getenv("CERE_RUN"), path[4096];
  if (!plan)
    return 0;
  char *run = dirname(strdup(plan));
  DIR *files = opendir(run);
  for (struct dirent *file; (file = readdir(files));) {
    if (!strncmp(file->d_name, "profile.", 8)) {
      snprintf(path, sizeof path, "%s/%s", run, file->d_name);
      return truncate(path, size);
    }
  }
  return 1;
}

int main(int argc, char **argv) {
  unsigned long x = 1;
  if (argc != 2 || cut(atol(argv[1])))
    return 1;
  for (volatile int i = 0; i < 5000; i++)
    x = often(x);
  for (volatile int i = 0; i < 10; i++)
    x = seldom(x);
  printf("%lx\n", x);
  return 0;
}
