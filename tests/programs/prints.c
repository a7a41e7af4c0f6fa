// Regions that print are captured; regions that read a file or use a socket are refused with the reason, and the rest goes on.
//@ refused: read_file@* ~ open
//@ refused: use_socket@* ~ socket
//@ codelets: 3
//@ flags: -O0 ; -O3 -march=native
//@ under: -O0 ~ direct@* ~ unchecked ~ did not touch there
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int lines;

static __attribute__((noinline)) void print(int n) {
    for (int i = 0; i < n; i++) {
        printf("line %d of %d\n", ++lines, n);
        if (i == 2)
            fflush(stdout);
    }
}
static __attribute__((noinline)) void direct(int n) {
    for (int i = 0; i < n; i++) {
        char text[] = "direct 0\n";
        text[7] = (char)('0' + i);
        if (write(1, text, sizeof text - 1) < 0)
            lines = -1;
    }
}
static __attribute__((noinline)) long read_file(const char *path) {
    long sum = 0;
    for (int round = 0; round < 2; round++) {
        FILE *file = fopen(path, "r");
        if (!file)
            return -1;
        int c;
        while ((c = fgetc(file)) != EOF)
            sum = sum * 31 + c;
        fclose(file);
    }
    return sum;
}
static __attribute__((noinline)) int use_socket(void) {
    int good = 0;
    for (int i = 0; i < 3; i++) {
        int pair[2];
        char text[8] = {0};
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
            return -1;
        good += write(pair[0], "hello", 5) == 5 && read(pair[1], text, 5) == 5 && !strcmp(text, "hello");
        close(pair[0]);
        close(pair[1]);
    }
    return good;
}
static __attribute__((noinline)) long after(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += i * lines;
    return sum;
}

int main(void) {
    print(5);
    fflush(stdout);
    direct(3);
    FILE *file = fopen("input.txt", "w");
    fputs("some text\nto read\n", file);
    fclose(file);
    printf("%ld\n", read_file("input.txt"));
    printf("%d\n", use_socket());
    printf("%ld\n", after(1000));
    return 0;
}
