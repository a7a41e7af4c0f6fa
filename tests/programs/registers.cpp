// What a region registers to run at the end is compared: destructors of static and thread-local objects, handlers, those of the
// C++ library among them.
//@ levels: -O2 ; -O0 ; -O1 -fno-pie -no-pie
//@ codelets: 2
//@ flags: -O0 ; -O3
//@ under: -O0 ~ objects@* ~ unchecked ~ the optimiser of its build
//@ under: -O3 ~ objects@* ~ unchecked ~ the optimiser of its build
#include <cstdio>
#include <cstdlib>
#include <string>

struct Ends {
    int number;
    explicit Ends(int n) : number(n) {}
    ~Ends() { std::printf("%d ends\n", number); }
};

static void at_exit() { std::puts("exit"); }

__attribute__((noinline)) static long objects(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        static std::string text("longer than what a string holds itself");
        static Ends fixed(3);
        thread_local Ends local(4);
        sum += (long)text.size() + fixed.number + local.number + i;
    }
    return sum;
}
__attribute__((noinline)) static int handlers(int n) {
    int failed = 0;
    for (int i = 0; i < n; i++)
        failed += std::atexit(at_exit);
    return failed;
}

int main() {
    std::printf("%ld\n", objects(500));
    std::printf("%d\n", handlers(40));
}
