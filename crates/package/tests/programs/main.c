// A program of several objects that says where its things are, then waits.
#include <stdio.h>
#include <string.h>

struct place { const char *name; const void *address; };

static double table[8] = {1, 2, 3};
static int count;
_Thread_local int shared_local = 3;
static _Thread_local double own_local[4] = {5};
static FILE **where = &stdout;
static size_t (*length)(const char *) = strlen;

int archived(int);
int assembled(int);
int plugged(int);
extern int assembled_counter, plugged_counter;
void archived_places(void (*)(const char *, const void *));
void unused(void);

static int twice(int x) {
  static int calls;
  calls++;
  return 2 * x;
}
static int (*table_of_functions[3])(int) = {twice, archived, plugged};

static void show(const char *name, const void *address) { printf("%s %p\n", name, address); }

int main(int argc, char **argv) {
  double sum = 0;
  for (int i = 0; i < 8; i++) {
    sum += table[i] + table_of_functions[(i + argc) % 3](i) + own_local[i & 3];
    sum += length(argv[0]) + assembled(i) + plugged_counter + (*where != NULL);
    count++;
    shared_local++;
  }
  if (argc > 100)
    unused();
  show("table main.c", table);
  show("count main.c", &count);
  show("where main.c", &where);
  show("length main.c", &length);
  show("twice main.c", twice);
  show("main -", main);
  show("assembled_counter -", &assembled_counter);
  show("plugged_counter -", &plugged_counter);
  show("shared_local tls", &shared_local);
  show("own_local tls", own_local);
  show("strlen library", length);
  show("stdout library", &stdout);
  archived_places(show);
  printf("ready %f\n", sum);
  fflush(stdout);
  return getchar() == 'x';
}
