// Virtual calls through captured vtables, containers, strings, lambdas, templates and iostreams.
//@ codelets: 3
//@ flags: -O0 ; -O3 -march=native
//@ under: -O0 ~ main@* ~ different ~ first at [region heap]
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace shapes {
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
    virtual void grow(double by) { scale *= by; }
    double scale = 1;
};
struct Square : Shape {
    explicit Square(double s) : side(s) {}
    double area() const override { return side * side * scale; }
    double side;
};
struct Circle : Shape {
    explicit Circle(double r) : radius(r) {}
    double area() const override { return 3 * radius * radius * scale; }
    void grow(double by) override { radius += by; }
    double radius;
};
} // namespace shapes

int main() {
    std::vector<std::unique_ptr<shapes::Shape>> all;
    for (int i = 0; i < 300; i++)
        if (i % 3)
            all.push_back(std::make_unique<shapes::Square>(i));
        else
            all.push_back(std::make_unique<shapes::Circle>(i));
    double total = 0;
    std::map<int, std::string> names;
    std::unordered_map<std::string, int> counts;
    std::vector<std::function<double(double)>> functions;
    for (int i = 0; i < 300; i++) {
        auto &shape = *all[i];
        shape.grow(1.5);
        total += shape.area();
        names[i % 50] += "shape number " + std::to_string(i);
        counts[names[i % 50].substr(0, 9)]++;
        functions.push_back([i, &total](double x) { return x * i + total * 1e-9; });
        std::ostringstream text;
        text << "area " << shape.area() << ' ' << i;
        total += text.str().size();
    }
    double sum = 0;
    for (auto &f : functions)
        sum += f(2);
    std::vector<double> areas(all.size());
    std::transform(all.begin(), all.end(), areas.begin(), [](auto &s) { return s->area(); });
    std::sort(areas.begin(), areas.end(), [](double a, double b) { return a > b; });
    for (int i = 0; i < 5; i++)
        std::cout << areas[i] << (i < 4 ? " " : "\n");
    std::cout << total << ' ' << sum << ' ' << names[7].size() << ' ' << counts.size() << std::endl;
}
