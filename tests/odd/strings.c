// Functions of strings and memory.
//@ vary: N 20 200
#include <strings.h>
word f@(word x) {
  char text[300], copy[300];
  for (int i = 0; i < $N; i++) {
    sprintf(text, "alpha,%d;beta=%lu,gamma:%d", i, x % 1000, i * i);
    strcpy(copy, text);
    char *rest = copy;
    for (char *part; (part = strsep(&rest, ",;:"));) x = mix(x, strlen(part) + (word)part[0]);
    char *twice = strdup(text);
    strcat(text, twice);
    x = mix(x, (word)(strstr(text, "gamma") - text) + (word)(strrchr(text, 'b') - text));
    x = mix(x, strspn(text, "alph") + strcspn(text, "=") + (strcasecmp(text, "ALPHA") > 0));
    memmove(text + 3, text, 40);
    x = mix(x, (word)((char *)memchr(text, 'p', 99) - text) + (memcmp(text, copy, 9) > 0) + strtoul(twice + 6, 0, 10));
    free(twice);
  }
  return x;
}
