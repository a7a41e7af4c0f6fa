// Exceptions that loops within loops throw, catch and let pass, with objects on the way.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

static int live;
struct Counted {
    Counted() { live++; }
    Counted(const Counted &) { live++; }
    ~Counted() { live--; }
};
struct Source {
    virtual ~Source() = default;
    virtual int next(int i) = 0;
};
struct Thrower : Source {
    int at;
    explicit Thrower(int at) : at(at) {}
    int next(int i) override {
        if (i == at) throw std::runtime_error("at " + std::to_string(i));
        if (i == at * 3) throw at;
        if (i == at * 7) throw std::string("late");
        return i % 11;
    }
};

static long caught_outside(Source &source, int n, int m) {
    long sum = 0;
    for (int t = 0; t < n; t++) {
        Counted outer;
        std::printf("outer %d %d\n", t, live);
        try {
            for (int i = 0; i < m; i++) {
                Counted inner;
                sum += source.next(i + t * m) + live;
            }
        } catch (const std::runtime_error &e) {
            sum += e.what()[3];
        } catch (int i) {
            sum -= i;
        }
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < m; i++)
                sum += i ^ t;
    }
    return sum;
}

static long caught_inside(Source &source, int n, int m) {
    std::vector<int> values;
    for (int t = 0; t < n; t++) {
        std::printf("inside %d\n", t);
        for (int i = 0; i < m; i++) {
            Counted inner;
            try {
                values.push_back(source.next(i + t * m));
                if (values.back() == 10 && i == m - 2) break;
            } catch (const std::exception &e) {
                values.push_back(e.what()[0]);
            } catch (int) {
                values.push_back(-1);
                continue;
            }
        }
        for (auto &value : values)
            value = value * 3 % 1009;
    }
    long sum = 0;
    for (int value : values) sum += value;
    return sum;
}

static long passing(Source &source, int n, int m) {
    long sum = 0;
    std::string text;
    for (int t = 0; t < n; t++) {
        Counted outer;
        std::printf("passing %d\n", t);
        for (int i = 0; i < m; i++) {
            std::string word = std::to_string(source.next(i + t * m));
            text += word;
            for (char c : word) sum += c;
        }
    }
    return sum + long(text.size());
}

int main() {
    Thrower thrower(70);
    try {
        std::printf("%ld\n", caught_outside(thrower, 8, 50));
        std::printf("%ld %d\n", caught_inside(thrower, 5, 60), live);
        Thrower calm(100000);
        std::printf("%ld\n", passing(calm, 3, 50));
        std::printf("%ld\n", passing(thrower, 8, 50));
    } catch (const std::exception &e) {
        std::printf("%s %d\n", e.what(), live);
    }
    try {
        std::printf("%ld\n", caught_outside(thrower, 30, 50));
    } catch (const std::string &late) {
        std::printf("%s %d\n", late.c_str(), live);
    }
}
