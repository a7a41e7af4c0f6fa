// Parallel regions in C++: objects, exceptions caught inside, lambdas, containers that grow in each thread.
//@ levels: -fopenmp -O2 -g ; -fopenmp -O0 -g ; -fopenmp -O3
//@ teams: 1 2
//@ capture: *@openmp.cpp*
//@ loop-refused: * ~ within a parallel region
//@ codelets: 4
//@ threads: 2 3
#include <cstdio>
#include <omp.h>
#include <stdexcept>
#include <vector>

namespace {
class Field {
public:
    explicit Field(int n) : values(static_cast<std::size_t>(n)) {}

    void step(long factor) {
#pragma omp parallel for schedule(static)
        for (std::size_t i = 0; i < values.size(); i++)
            values[i] = values[i] * factor + static_cast<long>(i);
    }

    long caught() {
        long found = 0;
#pragma omp parallel for reduction(+ : found)
        for (std::size_t i = 0; i < values.size(); i++) {
            try {
                if (values[i] % 977 == 3)
                    throw std::runtime_error("three");
                found += 1;
            } catch (const std::runtime_error &) {
                found += 1000;
            }
        }
        return found;
    }

    template <typename Function> void each(Function function) {
#pragma omp parallel
        {
#pragma omp for
            for (std::size_t i = 0; i < values.size(); i++)
                function(values[i]);
        }
    }

    long collected() {
        long sum = 0;
#pragma omp parallel
        {
            std::vector<long> mine;
#pragma omp for nowait
            for (std::size_t i = 0; i < values.size(); i++)
                if (values[i] % 3 == 0)
                    mine.push_back(values[i] & 1023);
            for (long value : mine) {
#pragma omp atomic
                sum += value;
            }
        }
        return sum;
    }

    std::vector<long> values;
};
} // namespace

int main() {
    Field field(5000);
    long check = 0;
    for (int step = 1; step < 4; step++) {
        field.step(step);
        check += field.caught();
        field.each([step](long &value) { value ^= step; });
        check += field.collected();
    }
    for (long value : field.values)
        check = check * 31 + value;
    std::printf("%ld\n", check);
}
