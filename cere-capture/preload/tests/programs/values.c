/* Variables whose values at entry and exit of each invocation are known; pages read, written and left alone. */
#include <stdio.h>

__attribute__((aligned(4096))) long counter[512];
__attribute__((aligned(4096))) long unread[512] = {4};
__attribute__((aligned(4096))) const volatile long constants[512] = {7, 8};
__attribute__((aligned(4096))) long input[512] = {3};
__attribute__((aligned(4096))) long spaced[4096];
_Thread_local long mine = 5;

__attribute__((noinline)) static void step(long n) {
    for (long i = 0; i < n; i++) {
        counter[0] += constants[0] * input[0];
        spaced[2048] = counter[0];
        mine++;
    }
}

__attribute__((noinline)) static void inner(long k) {
    for (long i = 0; i < 1000; i++) counter[i % 100] += k;
}

__attribute__((noinline)) static long outer(long n) {
    long sum = 0;
    for (long k = 0; k < n; k++) {
        input[0] += k;
        inner(k);
        sum += counter[1];
    }
    return sum;
}

__attribute__((noinline)) static long count_down(long n) {
    long sum = n;
    for (long i = 0; i < n; i++) {
        counter[3]++;
        sum += count_down(n - 1 - i);
    }
    return sum;
}

int main(void) {
    for (volatile int i = 0; i < 5; i++) step(10);
    printf("%ld %ld %ld %ld\n", counter[0], spaced[2048], mine, unread[0]);
    counter[0] = counter[1] = 0;
    printf("%ld %ld\n", outer(6), input[0]);
    printf("%ld\n", count_down(4));
    return 3;
}
