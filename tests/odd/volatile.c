// Volatile variables and pointers to them.
//@ vary: N 100 900
static volatile int f@_sensor = 3;
static volatile word *f@_port;
word f@(word x) {
  volatile word local[4] = {x, 1, 2, 3};
  f@_port = local;
  for (int i = 0; i < $N; i++) {
    f@_sensor = f@_sensor * 5 + i % 7;
    f@_port[i % 4] += f@_sensor & 255;
    x = mix(x, local[(i + 1) % 4]);
  }
  f@_port = 0;
  return x;
}
