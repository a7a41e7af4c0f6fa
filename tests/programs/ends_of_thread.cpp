// Thread-local variables with destructors, which are noted at the first use.
//@ levels: -O0 -g ; -O2
//@ flags: -O0 ; -O3
//@ codelets: 2
#include <cstdio>
#include <string>
#include <vector>

struct Counted {
    long n = 0;
    ~Counted() { std::printf("end %ld\n", n); }
};
static thread_local Counted counted;
static thread_local std::vector<std::string> *texts;
static thread_local std::string text = "some text that is longer than what fits inside";

__attribute__((noinline)) static void work(int k) {
    for (int i = 0; i < 50; i++)
        counted.n += i * k;
}

__attribute__((noinline)) static long append(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        thread_local std::vector<std::string> own(3, text);
        texts = &own;
        own.push_back(text);
        sum += static_cast<long>(own.size());
    }
    return sum;
}

int main() {
    long sum = 0;
    for (int k = 0; k < 3; k++) {
        work(k);
        sum += append(5);
    }
    std::printf("%ld %ld %zu\n", counted.n, sum, texts->size());
}
