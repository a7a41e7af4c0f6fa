// What the C library keeps: locale, keys for thread-specific data, generators of random numbers. Each is set before the regions, and
// each region begins with what the one before has left.
//@ levels: -O0 ; -O2 -g
//@ codelets: 6
//@ flags: -O1 ; -O3
#include <ctype.h>
#include <locale.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

static pthread_key_t first, later, unset;
static long counts[2] = {5, 7};
static char own_state[64];
static double values[64];
static long numbers[64];
static wchar_t wide[64];

__attribute__((noinline)) static void uniform(void) {
    for (int i = 0; i < 64; i++) values[i] = drand48() + erand48((unsigned short[]){1, 2, 3});
}

__attribute__((noinline)) static void dice(void) {
    for (int i = 0; i < 64; i++) numbers[i] = rand() % 6;
}

__attribute__((noinline)) static void own_dice(void) {
    for (int i = 0; i < 64; i++) numbers[i] += random();
}

__attribute__((noinline)) static long of_thread(void) {
    long sum = 0;
    for (int i = 0; i < 64; i++) {
        long *count = pthread_getspecific(i % 2 ? first : later);
        sum += ++*count * (pthread_getspecific(unset) == NULL);
    }
    return sum;
}

__attribute__((noinline)) static long exchange(void) {
    long sum = 0;
    for (int i = 0; i < 8; i++) {
        pthread_key_t made;
        pthread_key_create(&made, NULL);
        pthread_setspecific(made, &counts[i % 2]);
        pthread_setspecific(later, &counts[i % 2]);
        sum += (pthread_getspecific(made) == pthread_getspecific(later)) + (long)made;
        if (i % 2) pthread_key_delete(made);
    }
    return sum;
}

__attribute__((noinline)) static long letters(const char *text) {
    long upper = 0;
    mbstate_t state;
    memset(&state, 0, sizeof state);
    for (int i = 0; *text; i++) {
        int length = mbrtowc(&wide[i], text, 8, &state);
        upper += (iswupper(wide[i]) != 0) + towlower(wide[i]);
        text += length > 0 ? length : 1;
    }
    return upper;
}

int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    pthread_key_create(&unset, NULL);
    pthread_key_create(&first, NULL);
    pthread_key_t gone;
    pthread_key_create(&gone, NULL);
    pthread_key_create(&later, NULL);
    pthread_key_delete(gone);
    pthread_setspecific(first, &counts[0]);
    pthread_setspecific(later, &counts[1]);
    srand48(42);
    srand(17);
    for (int i = 0; i < 100; i++) numbers[0] += rand();
    unsigned short parameters[7] = {1, 2, 3, 0xe66d, 0xdeec, 5, 13};
    lcong48(parameters);
    uniform();
    dice();
    initstate(3, own_state, sizeof own_state);
    own_dice();
    long sum = of_thread() + exchange() + letters("Straße ÄÖÜ äöü Ελλάς");
    for (int i = 0; i < 64; i++) sum += numbers[i] + (long)(values[i] * 1e6);
    printf("%ld %ls\n", sum, wide);
}
