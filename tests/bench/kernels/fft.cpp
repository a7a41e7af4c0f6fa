// A recursive fast Fourier transform over std::complex in std::vector.
#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>
using complex = std::complex<double>;

static void transform(std::vector<complex> &a) {
    size_t n = a.size();
    if (n == 1)
        return;
    std::vector<complex> even(n / 2), odd(n / 2);
    for (size_t i = 0; i < n / 2; i++) {
        even[i] = a[2 * i];
        odd[i] = a[2 * i + 1];
    }
    transform(even);
    transform(odd);
    complex w(1), step = std::polar(1.0, -2 * M_PI / static_cast<double>(n));
    for (size_t i = 0; i < n / 2; i++) {
        complex t = w * odd[i];
        a[i] = even[i] + t;
        a[i + n / 2] = even[i] - t;
        w *= step;
    }
}

int main() {
    std::vector<complex> a(1 << 18);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = std::sin(0.01 * static_cast<double>(i));
    for (int round = 0; round < 4; round++)
        transform(a);
    std::printf("%.12g\n", std::abs(a[77]));
}
