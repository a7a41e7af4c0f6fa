// A region that an exception leaves, and one that catches inside.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

long total;

__attribute__((noinline)) static void check(int v, int limit) {
    if (v > limit) throw std::runtime_error("value " + std::to_string(v) + " is above the limit that was set");
}

__attribute__((noinline)) static void add(const std::vector<int> &values, int limit) {
    for (int v : values) {
        std::string text(40 + v, 'x');
        check(v, limit);
        total += text.size();
    }
}

__attribute__((noinline)) static int tolerant(const std::vector<int> &values) {
    int failures = 0;
    for (int v : values) {
        try {
            check(v, 2);
        } catch (const std::exception &) {
            failures++;
        }
    }
    return failures;
}

int main() {
    std::vector<int> values{1, 2, 3, 4};
    add(values, 10);
    try {
        add(values, 2);
    } catch (const std::exception &e) {
        std::printf("%s\n", e.what());
    }
    std::printf("%ld %d\n", total, tolerant(values));
}
