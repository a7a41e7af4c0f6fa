// Exceptions that machine code outside of the replay's units throws, catches and lets pass: of another image of the program, and of
// an object without IR.
//@ build: env -u LD_PRELOAD nice /usr/bin/clang++-22 -O1 -fPIC -Drisk=raw_risk -Deach=raw_each -c -o raw.o $DIR/parts/throws_library.cpp && $CXX $FLAGS -fPIC -shared -o libthrows.so $DIR/parts/throws_library.cpp && $CXX $FLAGS -o program $DIR/throws.cpp raw.o -L. -lthrows -Wl,-rpath,'$ORIGIN'
//@ levels: -O2 ; -O0 -g
//@ codelets: 4
//@ flags: -O1 ; -O3
#include <cstdio>
#include <stdexcept>
#include <string>

struct Odd : std::runtime_error {
    explicit Odd(int i) : std::runtime_error("odd"), value(i) {}
    int value;
};
int live;
int risk(int);
int raw_risk(int);
int each(int (*)(int), int);
int raw_each(int (*)(int), int);

static int refuse(int i) {
    if (i % 5 == 4) throw Odd(i);
    return i;
}

__attribute__((noinline)) int thrown(int x) {
    for (int i = 0; i < 50; i++) {
        try {
            x += risk(i);
        } catch (const std::runtime_error &e) {
            x += e.what()[0];
        } catch (int e) {
            x ^= e;
        }
    }
    return x;
}

__attribute__((noinline)) int thrown_raw(int x) {
    for (int i = 0; i < 50; i++) {
        try {
            x += raw_risk(i);
        } catch (const std::exception &e) {
            x += e.what()[0];
        } catch (int e) {
            x ^= e;
        }
    }
    return x;
}

__attribute__((noinline)) int passed(int x) {
    for (int i = 0; i < 50; i++) {
        try {
            x += each(refuse, i);
        } catch (const Odd &e) {
            x += e.value + live;
        }
    }
    return x;
}

__attribute__((noinline)) int passed_raw(int x) {
    for (int i = 0; i < 50; i++) {
        try {
            x += raw_each(refuse, i);
        } catch (const Odd &e) {
            x += e.value + live;
        }
    }
    return x;
}

int main() {
    int sum = thrown(1) + thrown_raw(2);
    std::printf("%d %d\n", sum, passed(3) + passed_raw(4));
}
