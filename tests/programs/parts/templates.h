#pragma once
#include <string>
#include <vector>

inline long hash_of(long x) {
    static long calls;
    calls++;
    for (int i = 0; i < 5; i++)
        x = (x ^ (x >> 7)) * 0x9E3779B1 + calls;
    return x & 0x7fffffff;
}
inline bool by_digits(long a, long b) { return a % 10 != b % 10 ? a % 10 < b % 10 : a < b; }

template <class T> struct Counter {
    static long total;
    static long run(const std::vector<long> &values) {
        T sum = 0;
        for (long v : values) {
            sum += static_cast<T>(v);
            total ^= static_cast<long>(sum);
        }
        return static_cast<long>(sum) + total;
    }
};
template <class T> long Counter<T>::total = 0;
template <> long Counter<int>::total;

class Registry {
  public:
    Registry(const char *name, int n) {
        for (int i = 0; i < n; i++)
            names.push_back(name + std::to_string(i));
    }
    int size() const { return static_cast<int>(names.size()); }

  private:
    std::vector<std::string> names;
};
