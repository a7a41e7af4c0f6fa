// The processor's floating-point state at entry: rounding mode, flush to zero, x87 precision.
//@ codelets: 1
//@ flags: -O0 ; -O3 -march=native
#include <fenv.h>
#include <stdio.h>
#include <xmmintrin.h>

int main(void) {
    volatile double third = 3.0, tiny = 1e-310;
    volatile long double wide = 3.0L;
    fesetround(FE_UPWARD);
    _mm_setcsr(_mm_getcsr() | 0x8040);
    double sum = 0;
    long double precise = 0;
    for (int i = 1; i < 1000; i++) {
        sum += i / third + tiny;
        precise += i / wide;
    }
    fesetround(FE_TONEAREST);
    printf("%.17g %.20Lg\n", sum, precise);
}
