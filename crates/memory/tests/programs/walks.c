// Loads, stores and read-modify-writes in many patterns, without libc: with a stack of its own, so that addresses are
// the same in every run, whatever the environment.

typedef unsigned long word;
typedef unsigned int half __attribute__((aligned(1)));

enum { LINES = 4096 };
static word table[LINES * 8] __attribute__((aligned(4096)));
static double x[3000], y[3000], square[64][64] __attribute__((aligned(4096)));
static unsigned char bytes[20000] __attribute__((aligned(64)));
static volatile word sink;

static word chase(word steps) {
  for (word i = 0; i < LINES; i++)
    table[i * 8] = (i * 5 + 1) % LINES;
  word at = 0;
  for (word i = 0; i < steps; i++)
    at = table[at * 8];
  return at;
}

static void daxpy(double a) {
  for (word i = 0; i < 3000; i++)
    y[i] += a * x[i];
}

static void columns(void) {
  for (word j = 0; j < 64; j++)
    for (word i = 0; i < 64; i++)
      square[i][j] += 1.0;
  for (word i = 0; i < LINES; i++)
    table[i * 8 + i % 8] += i;
}

// Words that straddle lines: every third word's border is not a word's.
static word straddle(word seed) {
  word sum = 0;
  for (word i = 0; i < 20000; i++) {
    seed = seed * 6364136223846793005ul + 1;
    word at = (seed >> 33) % (sizeof bytes - 16);
    if (seed >> 63)
      *(half *)(bytes + at) = (half)i;
    else
      sum += *(half *)(bytes + at);
  }
  return sum;
}

static word deep(word n) {
  volatile word local[9];
  local[n % 9] = n;
  return n ? deep(n - 1) + local[n % 9] : 0;
}

__attribute__((used)) void run(void) {
  sink = chase(9000);
  daxpy(2.0);
  daxpy(3.0);
  columns();
  sink = straddle(1);
  sink = deep(200);
  __asm__ volatile("syscall" ::"a"(60L), "D"(0L) : "rcx", "r11", "memory");
  __builtin_unreachable();
}

char stack[1 << 16] __attribute__((aligned(4096)));
__asm__(".globl _start\n"
        "_start: lea stack+65536(%rip), %rsp\n"
        "call run\n");
