// Loops that throw, catch, hold objects with destructors, and that an exception leaves.
//@ codelets: 5
//@ flags: -O0 ; -O3 -march=native
//@ under: -O0 ~ around@* ~ different ~ first at [region heap]
//@ under: -O3 -march=native ~ around@* ~ different ~ first at [region heap]
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

static int live, destroyed;
struct Guard {
    Guard() { live++; }
    ~Guard() { live--, destroyed++; }
};
struct Special : std::runtime_error {
    Special(int v) : std::runtime_error("special " + std::to_string(v)), value(v) {}
    int value;
};

static int risky(int i) {
    Guard guard;
    if (i % 7 == 0)
        throw Special(i);
    if (i % 11 == 0)
        throw std::out_of_range("eleven");
    if (i % 13 == 0)
        throw i;
    return i;
}

__attribute__((noinline)) static long inside(int n) {
    long sum = 0;
    for (int i = 1; i < n; i++) {
        Guard guard;
        try {
            sum += risky(i);
        } catch (const Special &s) {
            sum += 1000 * s.value;
        } catch (const std::exception &e) {
            sum += e.what()[0];
        } catch (int v) {
            sum -= v;
        }
    }
    return sum;
}
__attribute__((noinline)) static long through(int n) {
    std::vector<std::string> kept;
    long sum = 0;
    for (int i = 1; i < n; i++) {
        std::string text = "item " + std::to_string(risky(i));
        kept.push_back(text);
        sum += static_cast<long>(text.size());
    }
    return sum + static_cast<long>(kept.size());
}
__attribute__((noinline)) static long around(int n) {
    Guard outer;
    try {
        for (int i = 1; i < n; i++) {
            Guard guard;
            risky(i);
        }
    } catch (Special &s) {
        return s.value;
    }
    return 0;
}
__attribute__((noinline)) static long quiet(int n) {
    long sum = 0;
    for (int i = 1; i < n; i++) {
        Guard guard;
        std::vector<int> numbers(static_cast<size_t>(i), 3);
        sum += numbers.at(static_cast<size_t>(i - 1));
    }
    return sum;
}
__attribute__((noinline)) static long rethrow(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        try {
            try {
                throw Special(i);
            } catch (...) {
                sum++;
                throw;
            }
        } catch (std::runtime_error &e) {
            sum += e.what()[8];
        }
    }
    return sum;
}

int main() {
    long a = inside(100), b = 0;
    try {
        b = through(50);
    } catch (const std::exception &e) {
        b = -static_cast<long>(std::string(e.what()).size());
    }
    long c = around(20), d = quiet(100), e = rethrow(10);
    std::printf("%ld %ld %ld %ld %ld %d %d\n", a, b, c, d, e, live, destroyed);
}
