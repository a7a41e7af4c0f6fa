// Loops too short for a region, in functions that other units may hold as well.
//@ short-loops: refused
//@ levels: -O2 ; -O3 -g
//@ loop-refused: find<* ~ too short: a search
//@ loop-refused: Matrix<3>::* ~ too short: at most
//@ regions: 7
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

template <typename I, typename V> __attribute__((noinline)) I find(I at, I end, const V &value) {
    for (; at != end; ++at)
        if (*at == value)
            return at;
    return end;
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
    std::list<double> list;
    for (int i = 0; i < 2000; i++)
        list.push_back(i);
    double sum = 0;
    for (int i = 0; i < 1000; i++) {
        m.a[1][1] += 1;
        sum += m.trace() + static_cast<double>(find(v.data(), v.data() + 20, i % 30) - v.data());
    }
    for (int i = 0; i < 10; i++) {
        add(v, i);
        sum += total(list);
    }
    std::printf("%g %g\n", sum, v[10]);
}
