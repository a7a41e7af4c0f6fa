// Threads of C++ beside regions: loops that wait for them, in vectors of threads and of futures, one that hands them work by
// atomics, and one that runs while they compute.
//@ levels: -O2 -g
//@ capture: joins*
//@ capture: gets*
//@ capture: publishes*
//@ capture: beside*
//@ refused: joins* ~ waits for another thread
//@ refused: gets* ~ waits for another thread
//@ codelets: 2
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <thread>
#include <vector>

static std::atomic<long> published{0}, taken{0};
static std::atomic<bool> over{false};
static double values[2000];

static void takes() {
    long next = 0;
    while (!over)
        while (next < published) {
            next++;
            taken++;
        }
}

// The counters are on a page that the other thread writes as well.
__attribute__((noinline)) static void publishes(int n) {
    for (int i = 0; i < n; i++) {
        for (int k = 1; k < 2000; k++) values[k] += values[k - 1] * 0.25 + i;
        published++;
    }
}

__attribute__((noinline)) static double beside(int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += values[i % 2000] * 0.5 + i;
    return sum;
}

__attribute__((noinline)) static void joins(std::vector<std::thread> &threads) {
    for (auto &thread : threads) thread.join();
}

__attribute__((noinline)) static long gets(std::vector<std::future<long>> &futures) {
    long sum = 0;
    for (auto &future : futures) sum += future.get();
    return sum;
}

static long counts(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum = sum + i;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return sum;
}

int main() {
    std::vector<std::thread> threads;
    threads.emplace_back(takes);
    while (published == 0 && taken != published) {}
    publishes(20);
    double sum = beside(3000);
    while (taken < 20) {}
    over = true;
    threads.emplace_back([] { counts(100000); });
    joins(threads);
    std::vector<std::future<long>> futures;
    for (int i = 0; i < 3; i++) futures.push_back(std::async(std::launch::async, counts, 100000));
    long all = gets(futures);
    std::printf("%ld %ld %g\n", all, taken.load(), sum);
}
