// A shared library whose objects without IR keep their symbols from others: by hidden visibility, by a version script, by having
// static ones of the same names; functions of the C library's static part; thread-local variables of another library.
//@ levels: -O0 -g
//@ build: for i in 1 2; do env -u LD_PRELOAD nice /usr/bin/gcc -O2 -fPIC -DNUMBER=$i -c -o same$i.o $DIR/parts/hidden_same.c || exit; done && clang-22 -c -o weights.o $DIR/parts/hidden_weights.s && env -u LD_PRELOAD nice /usr/bin/gcc -O2 -fPIC -shared -DROOM -o libroom.so $DIR/parts/hidden_same.c && echo '{ global: sweep; start; call; local: *; };' > map && $CC $FLAGS -fPIC -c -o library.o $DIR/parts/hidden_library.c && $CC -shared -o libsweep.so same1.o library.o weights.o same2.o -Wl,--version-script,map -L. -lroom && $CC $FLAGS -o program $DIR/hidden.c -L. -lsweep -lroom -Wl,-rpath,'$ORIGIN'
//@ regions: 3
//@ codelets: 1
//@ refused: main@hidden.c* ~ uses thread-local variables
//@ refused: fill@hidden_library.c:* ~ thread-local variables of another image
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>

double sweep(int n);
void start(void);
char *call(int i);

int main(void) {
    double sum = 0;
    start();
    for (int i = 0; i < 3; i++)
        sum += sweep(4000);
    call(3)[0] = 1;
    printf("%.17g\n", sum);
}
