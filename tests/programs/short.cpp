// Loops too short for a region, in functions that other units may hold as well.
//@ short-loops: refused
//@ levels: -O2 ; -O3 -g
//@ loop-refused: skip<* ~ too short: a search
//@ loop-refused: Matrix<3>::* ~ too short: at most
//@ regions: 9
//@ codelets: 4
#include <cstdio>
#include <list>
#include <vector>

template <int N> struct Matrix {
    double a[N][N];
    __attribute__((noinline)) double trace() const {
        double sum = 0;
        for (int i = 0; i < N; i++)
            sum += a[i][i];
        return sum;
    }
};

template <typename I, typename V> __attribute__((noinline)) I skip(I at, const V &value) {
    while (*at == value)
        ++at;
    return at;
}

// It may be a check of all elements: a region.
static bool anywhere(const std::vector<double> &a, double value) {
    for (double other : a)
        if (other == value)
            return true;
    return false;
}

// A list to its end, and steps that nothing bounds: regions.
static double total(const std::list<double> &list) {
    double sum = 0;
    for (double value : list)
        sum += value;
    return sum;
}

static void add(std::vector<double> &a, double b) {
    for (double &value : a)
        value += b;
}

int main() {
    Matrix<3> m{{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}};
    std::vector<double> v(1000);
    for (int i = 0; i < 1000; i++)
        v[i] = i / 5 % 7;
    std::list<double> list;
    for (int i = 0; i < 2000; i++)
        list.push_back(i);
    double sum = 0;
    for (int i = 0; i < 1000; i++) {
        m.a[1][1] += 1;
        sum += m.trace() + static_cast<double>(skip(v.data(), i % 30) - v.data());
    }
    for (int i = 0; i < 10; i++) {
        add(v, i);
        sum += total(list) + anywhere(v, -1);
    }
    std::printf("%g %g\n", sum, v[10]);
}
