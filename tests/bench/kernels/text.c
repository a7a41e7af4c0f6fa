// Words of a text counted by length, bytes mapped by a table, a checksum over all.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    size_t n = 8 << 20;
    unsigned char *text = malloc(n + 1), map[256];
    unsigned seed = 1, lengths[64] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        text[i] = "etaoin shrdlu cmfwyp vbgkjqxz  "[seed >> 27];
    }
    text[n] = 0;
    for (int i = 0; i < 256; i++)
        map[i] = (unsigned char)toupper(i);
    for (int round = 0; round < 6; round++) {
        size_t word = 0;
        for (size_t i = 0; i < n; i++) {
            text[i] = map[text[i]];
            if (text[i] == ' ') {
                lengths[word & 63]++;
                word = 0;
            } else
                word++;
        }
        for (size_t i = 0; i < n; i++)
            sum = (sum << 5 | sum >> 27) ^ text[i];
    }
    printf("%u %u %u\n", sum, lengths[3], lengths[7]);
}
