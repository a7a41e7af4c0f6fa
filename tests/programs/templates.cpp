// Inline functions and templates that two units share, static members, a global with a constructor, std::sort with an outside comparator.
//@ files: parts/templates_other.cpp
//@ codelets: 4
//@ flags: -O0 ; -O3 -march=native
#include "parts/templates.h"
#include <algorithm>
#include <cstdio>
#include <vector>

template <> long Counter<int>::total = 5;
static Registry registry("main", 3);
long other_sum(int n);

int main() {
    std::vector<long> values(2000);
    for (int i = 0; i < 2000; i++)
        values[static_cast<size_t>(i)] = hash_of(i) % 1000;
    long sum = Counter<int>::run(values) + Counter<long>::run(values) + other_sum(500);
    std::sort(values.begin(), values.end(), by_digits);
    std::printf("%ld %ld %d %ld\n", sum, values[77], registry.size(), Counter<long>::total);
}
