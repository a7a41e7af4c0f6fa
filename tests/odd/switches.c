// Jump tables, tables of strings, of functions and of addresses of variables.
//@ vary: N 100 900
static int f@_a, f@_b, f@_c;
static int *const f@_places[] = {&f@_a, &f@_b, &f@_c, &f@_a};
static const char *const f@_names[] = {"zero", "one", "two", "three", "four", "five", "six", "seven"};
static word f@_up(word x) { return x + 1; }
static word f@_down(word x) { return x - 1; }
static word f@_turn(word x) { return ~x; }
static word (*const f@_ways[])(word) = {f@_up, f@_down, f@_turn};
word f@(word x) {
  for (int i = 0; i < $N; i++) {
    *f@_places[i % 4] += i;
    switch (x % 11) {
    case 0: x += 7; break;
    case 1: x ^= 0xff; break;
    case 2: x = f@_ways[i % 3](x); break;
    case 3: x *= 5;
    case 4: x -= f@_a; break;
    case 5: x += strlen(f@_names[i % 8]); break;
    case 6: x += f@_names[i % 8][1]; break;
    case 7: x ^= (word)f@_b << 9; break;
    default: x = mix(x, f@_c);
    }
  }
  return x;
}
