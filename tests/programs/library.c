// Calls of the C library inside the region: mathematics, strings, character classes, numbers, time, environment, memory.
//@ env: CERE_TEST_WORD=forty-two
//@ codelets: 2
//@ flags: -O0 ; -O3 -march=native
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char text[4096];
static char buffer[4096];

int main(void) {
    for (int i = 0; i < 4095; i++)
        text[i] = (char)("The quick brown Fox 1.5e3 jumps, over 42 dogs. "[i % 47]);
    double sum = 0;
    long count = 0;
    for (int i = 0; i < 200; i++) {
        sum += sin(i) * exp(i / 100.0) + pow(i, 1.5) + fmod(i, 3.7) + log1p(i);
        const char *at = text + i;
        count += (long)strlen(at) + (strchr(at, 'F') - at) + (strstr(at, "over") - at);
        memcpy(buffer, at, 64);
        memmove(buffer + 3, buffer, 64);
        for (int j = 0; j < 64; j++)
            count += isupper((unsigned char)buffer[j]) ? toupper(buffer[j]) : isdigit((unsigned char)buffer[j]);
        sum += strtod("1.25", NULL) + atoi("17");
        count += snprintf(buffer + 1000, 100, "%d %.3f %s", i, sum, "x");
        count += strcmp(text, buffer) < 0;
        count += time(NULL) != 0 && clock() >= 0;
        const char *word = getenv("CERE_TEST_WORD");
        count += word ? (long)strlen(word) : 0;
        count += abs(-i) + (long)labs(-3L * i);
    }
    printf("%.17g %ld %s\n", sum, count, buffer + 1000);
}
