// Numbers of 128 bits.
//@ vary: N 100 900
static unsigned __int128 f@_state[5];
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    unsigned __int128 a = f@_state[i % 5] + x;
    a = a * 0x1234567890abcdeful + ((unsigned __int128)x << 64);
    if (i % 7 == 0) a /= x % 1000 + 3;
    __int128 s = (__int128)a >> (i % 50);
    f@_state[i % 5] = a ^ (unsigned __int128)s;
    x = mix(x, (word)(a >> 64) ^ (word)a);
  }
  return x;
}
