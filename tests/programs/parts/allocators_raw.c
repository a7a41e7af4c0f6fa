#include <stdlib.h>
#include <string.h>

char *raw_copy(const char *text) { return strcpy(malloc(strlen(text) + 1), text); }
void raw_drop(char *text) { free(text); }
