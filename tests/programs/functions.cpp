// Methods, templates and operators as regions, exceptions that leave them and that they catch, recursion with destructors, and a
// function that two units have.
//@ functions: Grid::*
//@ functions: refine
//@ functions: risky*
//@ functions: caught
//@ functions: scaled<*
//@ functions: shared_norm
//@ files: parts/functions_other.cpp
//@ invocation: 1,2
//@ codelets: 10
//@ flags: -O0 ; -O3
#include "parts/functions_shared.h"
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

class Grid {
public:
    explicit Grid(int n) : values(n) {
        for (int i = 0; i < n; i++)
            values[i] = (i * 31) % 17;
    }
    double step(double weight);
    double operator()(int from, int to) const;
    virtual long count(double limit) const;
    virtual ~Grid() {}

protected:
    std::vector<double> values;
};

double Grid::step(double weight) {
    double sum = 0;
    for (size_t i = 1; i + 1 < values.size(); i++) {
        values[i] = weight * (values[i - 1] + values[i + 1]) + (1 - 2 * weight) * values[i];
        sum += values[i];
    }
    return sum;
}

double Grid::operator()(int from, int to) const {
    double sum = 0;
    for (int i = from; i < to; i++)
        sum += values[i] * i;
    return sum;
}

long Grid::count(double limit) const {
    long found = 0;
    for (double v : values)
        found += v > limit;
    return found * 3 + 1;
}

template <typename T> T scaled(const std::vector<T> &x, T by) {
    T sum = 0;
    for (const T &one : x)
        sum += one * by;
    return sum + by;
}

struct Held {
    static int live;
    int id;
    explicit Held(int id) : id(id) { live++; }
    ~Held() { live--; }
};
int Held::live;

// The outermost call throws through all others.
int risky(int depth, int limit) {
    Held held(depth);
    int sum = 0;
    for (int i = 0; i < 700; i++)
        sum += i % (depth + 2);
    if (depth == limit)
        throw std::runtime_error("at " + std::to_string(sum));
    return depth > 4 ? sum : sum + risky(depth + 1, limit) + held.id;
}

// Not one that leaves another way.
void risky_once(int x) {
    unsigned sum = static_cast<unsigned>(x);
    for (unsigned i = 0; i < 1200; i++)
        sum = sum * 5 + i % 3;
    if (sum)
        throw static_cast<int>(sum % 1000);
}

int caught(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        try {
            if (i % 3 == 0)
                throw i;
            if (i % 5 == 0)
                throw std::string(static_cast<size_t>(i), 'x');
            sum += i;
        } catch (int thrown) {
            sum += thrown * 2;
        } catch (const std::string &thrown) {
            sum += static_cast<int>(thrown.size());
        }
    return sum;
}

struct Node {
    double value;
    std::unique_ptr<Node> left, right;
};

std::unique_ptr<Node> refine(double from, double to, int depth) {
    auto node = std::make_unique<Node>();
    node->value = (from + to) / 2;
    if (depth > 0) {
        node->left = refine(from, node->value, depth - 1);
        node->right = refine(node->value, to, depth - 1);
    }
    return node;
}

static double sum(const Node *node) { return node ? node->value + sum(node->left.get()) + sum(node->right.get()) : 0; }

int main() {
    Grid grid(2500);
    std::printf("%.12g %.12g\n", grid.step(0.2), grid.step(0.25));
    std::printf("%.12g %.12g %ld\n", grid(0, 2000), grid(100, 2400), grid.count(5) + grid.count(6));
    std::printf("%.12g\n", scaled(std::vector<double>(2000, 1.5), 2.0));
    std::printf("%ld\n", scaled(std::vector<long>(2100, 3), 2L));
    for (int i = 0; i < 2; i++) {
        try {
            std::printf("%d\n", risky(0, 3 + i));
        } catch (const std::exception &e) {
            std::printf("%s %d\n", e.what(), Held::live);
        }
        try {
            risky_once(i + 1);
        } catch (int x) {
            std::printf("%d\n", x);
        }
    }
    std::printf("%d %d\n", caught(300), caught(200));
    std::printf("%.12g %.12g\n", sum(refine(0, 1, 8).get()), sum(refine(0, 3, 7).get()));
    double x[2000];
    for (int i = 0; i < 2000; i++)
        x[i] = i % 19;
    std::printf("%.12g %.12g\n", shared_norm(x, 2000), other_norm(x, 1900));
    return 0;
}
