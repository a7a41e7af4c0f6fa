// Where getopt stands is the C library's, or lies in the program if the linker copied it there: loops over options and over what
// follows them.
//@ levels: -O2 ; -O2 -fno-pie -no-pie
//@ codelets: 2
//@ flags: -O1
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long total;
static char first[16];

static __attribute__((noinline)) void rest(int argc, char **argv) {
    for (; optind < argc; optind++) total += strlen(argv[optind]) * (optind + 1) + atoi(argv[optind]);
}

static __attribute__((noinline)) void options(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "vn:s:")) != -1) {
        total += option;
        if (option == 'n') total += atoi(optarg);
        if (option == 's') strncpy(first, optarg, sizeof first - 1);
    }
}

int main(void) {
    char *argv[] = {"options", "-vn", "12", "-s", "text", "345", "hello", "6", 0};
    options(8, argv);
    rest(8, argv);
    printf("%ld %s %d\n", total, first, optind);
}
