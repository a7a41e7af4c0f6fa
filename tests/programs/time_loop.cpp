// Loops inside a loop that calls what only the run knows: exceptions that leave the inner loop and are caught in the outer one or
// beyond it, objects that both destroy, and loops over containers.
//@ levels: -O2 ; -O1 -g ; -O3 -march=native
//@ codelets: 6
//@ flags: -O0 ; -O3
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Neighbour {
    virtual ~Neighbour() = default;
    virtual double exchange(double value) = 0;
};
struct Same : Neighbour {
    int calls = 0;
    double exchange(double value) override { return value + ++calls; }
};
struct Counted {
    static int live;
    Counted() { live++; }
    ~Counted() { live--; }
};
int Counted::live;
static std::unique_ptr<Neighbour> neighbour = std::make_unique<Same>();

static __attribute__((noinline)) int check(int i, int bad) {
    if (i == bad) throw std::runtime_error("bad " + std::to_string(i));
    if (i == -bad) throw i;
    return i * 3;
}

__attribute__((noinline)) double smooth(std::vector<double> &x, int n) {
    double sum = 0;
    for (int t = 0; t < n; t++) {
        sum = neighbour->exchange(sum);
        for (auto &value : x)
            value = 0.5 * value + sum;
        for (size_t i = 1; i < x.size(); i++)
            sum += x[i] - x[i - 1];
    }
    return sum;
}

__attribute__((noinline)) long caught(int n, int m) {
    long sum = 0;
    for (int t = 0; t < n; t++) {
        Counted outer;
        sum += long(neighbour->exchange(1));
        try {
            for (int i = 0; i < m; i++) {
                Counted inner;
                sum += check(i, t == 2 ? m / 2 : m) + Counted::live;
            }
        } catch (const std::runtime_error &e) {
            sum += e.what()[4];
        }
        for (int i = 0; i < m; i++)
            sum += i ^ t;
    }
    return sum;
}

__attribute__((noinline)) long thrown(int n, int m) {
    long sum = 0;
    for (int t = 0; t < n; t++) {
        Counted outer;
        sum += long(neighbour->exchange(1));
        for (int i = 0; i < m; i++)
            try {
                Counted inner;
                sum += check(i - (t == 3 ? m : 0), m - 7);
            } catch (const std::exception &e) {
                sum -= e.what()[0];
            }
    }
    return sum;
}

int main() {
    std::vector<double> x(4000, 1.5);
    std::printf("%.15g\n", smooth(x, 5));
    std::printf("%ld %d\n", caught(4, 3000), Counted::live);
    try {
        std::printf("%ld\n", thrown(5, 3000));
    } catch (int i) {
        std::printf("caught %d %d\n", i, Counted::live);
    }
}
