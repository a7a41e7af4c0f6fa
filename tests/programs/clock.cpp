// The clocks of C++: readings, deadlines, seeds.
//@ levels: -O0 -g ; -O2
//@ capture: *@clock.cpp*
//@ codelets: 2
//@ flags: -O0 ; -O3 -march=native
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

using Steady = std::chrono::steady_clock;

struct Reading {
    Steady::time_point steady;
    std::chrono::system_clock::time_point system;
    std::chrono::high_resolution_clock::time_point high;
    unsigned long drawn;
};

[[gnu::noinline]] static void readings(std::vector<Reading> &all, int n) {
    for (int i = 0; i < n; i++) {
        Reading r{Steady::now(), std::chrono::system_clock::now(),
                  std::chrono::high_resolution_clock::now(), 0};
        std::mt19937_64 random(r.system.time_since_epoch().count());
        r.drawn = random();
        all.push_back(r);
        std::this_thread::sleep_until(Steady::now() + std::chrono::milliseconds(1));
    }
}

[[gnu::noinline]] static long until(Steady::time_point deadline, std::vector<double> &seconds) {
    long rounds = 0;
    while (Steady::now() < deadline) {
        for (volatile int i = 0; i < 20000; i++)
            rounds += i % 7 == 0;
        auto left = deadline - Steady::now();
        seconds.push_back(std::chrono::duration<double>(left).count());
    }
    return rounds;
}

int main() {
    std::vector<Reading> all;
    readings(all, 5);
    std::vector<double> seconds;
    seconds.reserve(1 << 20);
    long rounds = until(Steady::now() + std::chrono::milliseconds(300), seconds);
    std::printf("%zu %d\n", all.size(), rounds >= 0);
}
