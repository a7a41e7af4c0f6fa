// The standard streams of C++ keep how they format, also where the linker has copied them into the program.
//@ levels: -O2 ; -O2 -fno-pie -no-pie ; -O0
//@ codelets: 3
//@ invocation: 1,2,3
//@ flags: -O1
#include <iomanip>
#include <iostream>

static double values[100];

static __attribute__((noinline)) void show(int n) {
    for (int i = 0; i < n; i++) std::cout << std::setprecision(3 + i) << values[i] << ' ';
    std::cout << '\n';
}

int main() {
    for (int i = 0; i < 100; i++) values[i] = 1.0 / (i + 3);
    show(5);
    show(7);
    std::cout << std::fixed;
    show(4);
}
