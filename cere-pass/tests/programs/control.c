#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int zero;

static int several_exits(const int *a, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    if (a[i] == 7)
      return sum + 1000;
    if (a[i] == 9)
      goto nine;
    if (a[i] < 0)
      break;
    sum += a[i];
  }
  return sum;
nine:
  return -sum;
}

static int two_on_a_line(int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) s += i * i; for (int i = 0; i < n; ++i) s ^= i + zero;
  return s;
}

static void leave(int code) {
  for (int i = 0;; ++i) {
    printf("leaving %d\n", i);
    if (i == code)
      exit(code - 2);
  }
}

static int nested_goto(int n) {
  int s = 0;
again:
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      s += i * j;
      if (s % 17 == 3)
        goto out;
    }
out:
  if (++s < 40)
    goto again;
  return s;
}

static int irreducible(int n) {
  int i = 0, s = 0;
  if (n & 1)
    goto middle;
  while (i < n) {
    s += i;
  middle:
    s += 2 * i++;
  }
  return s;
}

static int interpreter(const unsigned char *code) {
  static void *const table[] = {&&add, &&twice, &&stop};
  int acc = 1;
  goto *table[*code++];
add:
  acc += 5;
  goto *table[*code++];
twice:
  acc *= 2;
  goto *table[*code++];
stop:
  for (int i = 0; i < 10; ++i)
    acc += i ^ zero;
  return acc;
}

static unsigned recursive(unsigned n) {
  unsigned s = 1;
  for (unsigned i = 0; i < n; ++i)
    s = s * 31 + recursive(i);
  return s;
}

static int dead_code_that_does_not_link(int n) {
  extern int nowhere(int);
  int s = 0;
  for (int i = 0; i < n; ++i)
    s += nowhere(i);
  return s;
}

static int switches(const char *s) {
  int state = 0, seen = 0;
  for (; *s; ++s) {
    switch (*s) {
    case 'a': state = 1; continue;
    case 'b': if (state) return -1; break;
    case 'c': case 'd': seen += state * 3; break;
    default: seen ^= *s;
    }
    if (seen > 5000)
      goto done;
  }
done:
  return seen;
}

struct list { struct list *next; int value; };

int main(int argc, char **argv) {
  (void)argv;
  int a[] = {1, 2, 3, 4, 7}, b[] = {1, 9}, c[] = {5, -1}, d[] = {8};
  printf("%d %d %d %d\n", several_exits(a, 5), several_exits(b, 2), several_exits(c, 2), several_exits(d, 1));
  printf("%d %d %d %d\n", two_on_a_line(50), nested_goto(7), irreducible(8), irreducible(9));
  printf("%d %u %d %d\n", interpreter((const unsigned char[]){0, 1, 1, 0, 2}), recursive(12), switches("xxacdq"), switches("xxb"));
#ifdef __OPTIMIZE__
  if (sizeof(int) == 2)
    printf("%d\n", dead_code_that_does_not_link(argc));
#endif
  struct list *head = NULL;
  for (int i = 0; i < 20; ++i) {
    struct list *n = malloc(sizeof *n);
    n->value = i * i;
    n->next = head;
    head = n;
  }
  long total = 0;
  while (head) {
    struct list *n = head;
    total = total * 3 + n->value;
    head = n->next;
    free(n);
  }
  printf("%ld\n", total);
  leave(2 + zero);
}
