#include <stdexcept>

extern int live;
struct Held {
    Held() { live++; }
    ~Held() { live--; }
};

int risk(int i) {
    if (i % 3 == 1) throw std::runtime_error("risk");
    if (i % 3 == 2) throw i;
    return i;
}

int each(int (*f)(int), int n) {
    Held held;
    int sum = 0;
    for (int i = 0; i < n; i++) sum += f(i) * live;
    return sum;
}
