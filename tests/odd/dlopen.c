// A plugin that is opened before the loop or in it, and functions that dlsym finds.
//@ vary: N 50 500
//@ pick: WHEN -1 | 3
//@ pick: HOW RTLD_NOW | RTLD_LAZY | RTLD_NOW + RTLD_GLOBAL
//@ allowed: outside state
#include <dlfcn.h>
word f@(word x) {
  void *plugin = 0;
  word (*step)(word) = 0;
  double (*root)(double) = (double (*)(double))dlsym(RTLD_DEFAULT, "sqrt");
  for (int i = -1; i < $N; i++) {
    if (i == $WHEN) {
      plugin = dlopen("$ORIGIN/libplugin@.so", $HOW);
      if (plugin) step = (word (*)(word))dlsym(plugin, "f@_x_plugged");
    }
    x = step ? step(x) : x * 3;
    if (root) x += (word)root((double)(x & 0xffff));
  }
  return x;
}
//@ part: plugin
static word f@_calls;
word f@_x_plugged(word x) {
  for (int i = 0; i < 5; i++) x = mix(x, i + f@_calls);
  f@_calls++;
  return x;
}
