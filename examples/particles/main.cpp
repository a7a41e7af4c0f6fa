// usage: particles [count] [steps]
#include "shape.h"
#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char **argv) {
    int count = argc > 1 ? std::atoi(argv[1]) : 4000, steps = argc > 2 ? std::atoi(argv[2]) : 20;
    try {
        System system(count, 12.0, 1.5);
        for (int step = 0; step < steps; step++) {
            system.sort();
            system.interact();
            system.move(0.002);
        }
        std::printf("kinetic energy %.17g\n", system.kinetic());
    } catch (const std::exception &e) {
        std::fprintf(stderr, "particles: %s\n", e.what());
        return 1;
    }
}
