// Exceptions through several regions: functions that unwind beside their loops are called in tries, and tries of one function name
// the same types in another order.
//@ levels: -O0 ; -O2
//@ codelets: 4
//@ flags: -O3 ; -O0
#include <cstdio>

static int live, destroyed;
struct Guard {
    int kind;
    explicit Guard(int kind) : kind(kind) { live++; }
    ~Guard() { live--, destroyed += kind; }
};
struct Base {
    int value;
    explicit Base(int value) : value(value) {}
};
struct Derived : Base {
    using Base::Base;
};

__attribute__((noinline)) static void risky(int i) {
    if (i == 3)
        throw 7;
    if (i == 5)
        throw Derived(i);
    if (i > 90)
        throw 2.5;
}
static int beside(int from, int to) {
    Guard around(1);
    int sum = 0;
    for (int i = from; i < to; i++) {
        Guard inside(10);
        risky(i);
        sum += i;
    }
    risky(to);
    return sum;
}
__attribute__((noinline)) static int crossed(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        try {
            sum += beside(i, i + 3);
        } catch (const Base &base) {
            sum += 100 * base.value;
        } catch (int value) {
            sum += 1000 * value;
        }
    }
    return sum;
}
__attribute__((noinline)) static int two_orders(int n) {
    try {
        risky(1);
    } catch (double) {
        return -1;
    }
    try {
        for (int i = 0; i < n; i++)
            risky(i);
    } catch (Base &base) {
        return base.value;
    } catch (double value) {
        return static_cast<int>(value * 10);
    } catch (int value) {
        return 100 + value;
    }
    return 0;
}

int main() {
    int sum = 0;
    for (int i = 0; i < 8; i++)
        sum += two_orders(i);
    std::printf("%d %d %d %d\n", sum, crossed(9), live, destroyed);
}
