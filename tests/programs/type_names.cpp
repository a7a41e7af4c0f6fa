// Names of types are compared by pointer where both are the C++ library's: in a replay one is of the captured library.
//@ levels: -O0 ; -O2 -g
//@ codelets: 3
//@ flags: -O0 ; -O3 -march=native
#include <any>
#include <cstdio>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <typeinfo>

__attribute__((noinline)) static long look(const std::locale &locale, int n) {
    static const char text[] = "abcdefgh";
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += std::use_facet<std::collate<char>>(locale).hash(text, text + 1 + i % 7);
    return sum;
}

__attribute__((noinline)) static long count(const std::any *values, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        if (values[i].type() == typeid(int))
            sum += std::any_cast<int>(values[i]);
        else if (auto *text = std::any_cast<std::string>(&values[i]))
            sum += text->size();
    }
    return sum;
}

__attribute__((noinline)) static long caught(std::exception *const *errors, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        if (dynamic_cast<std::out_of_range *>(errors[i]))
            sum += 1;
        else if (dynamic_cast<std::logic_error *>(errors[i]))
            sum += 100;
        else if (typeid(*errors[i]) == typeid(std::runtime_error))
            sum += 10000;
    }
    return sum;
}

int main() {
    std::locale locale;
    long sum = 0;
    for (int k = 0; k < 3; k++)
        sum ^= look(locale, 50);
    std::any values[30];
    for (int i = 0; i < 30; i++)
        i % 3 ? values[i] = i : values[i] = std::string(i, 'x');
    sum += count(values, 30);
    std::exception *errors[] = {new std::out_of_range("a"), new std::invalid_argument("b"), new std::runtime_error("c"),
                                new std::bad_alloc, new std::length_error("d")};
    sum += caught(errors, 5);
    std::printf("%ld\n", sum);
}
