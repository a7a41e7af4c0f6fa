// Code that the program makes: in memory of its own, and in a file without a name that is mapped twice.
//@ levels: -O2 -g ; -O0
//@ capture: run@*
//@ capture: run_shared@*
//@ codelets: 2
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long sum;

// lea rax, [rdi + 3]; ret
static const unsigned char code[] = {0x48, 0x8d, 0x47, 0x03, 0xc3};

__attribute__((noinline)) static void run(long (*made)(long), int n) {
    for (int i = 0; i < n; i++) sum += made(i);
}

__attribute__((noinline)) static void run_shared(long (*made)(long), int n) {
    for (int i = 0; i < n; i++) sum += made(i) * 2;
}

int main(void) {
    void *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(own, code, sizeof code);
    run((long (*)(long))own, 1000);
    int file = memfd_create("made", 0);
    if (file < 0 || ftruncate(file, 4096)) return 1;
    void *writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *executable = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    memcpy(writable, code, sizeof code);
    run_shared((long (*)(long))executable, 1000);
    printf("%ld\n", sum);
    return 0;
}
