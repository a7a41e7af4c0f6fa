// A plugin that is opened at run time, built as another image.
//@ levels: -O2 ; -O0 -g
//@ build: $CC $FLAGS -fPIC -shared -o plugin.so $DIR/parts/filter.c && $CC $FLAGS -o program $DIR/plugin.c -ldl -lm
//@ codelets: 2
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void *plugin = dlopen("./plugin.so", RTLD_NOW);
    if (!plugin) {
        puts(dlerror());
        return 1;
    }
    void (*smooth)(double *, int) = (void (*)(double *, int))dlsym(plugin, "smooth");
    static double values[500];
    for (int i = 0; i < 500; i++)
        values[i] = (i * 37) % 101;
    smooth(values, 500);
    smooth(values, 500);
    printf("%.17g\n", values[250]);
    dlclose(plugin);
}
