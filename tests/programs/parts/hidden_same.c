// Objects without IR with the same names: of a table and of a function one is for the other objects.
#ifdef ROOM
_Thread_local char room[256];
#elif NUMBER == 1
static const unsigned char table[64] = {9, 9, 9, [20] = 7};
static __attribute__((noinline)) int scale(int i) { return table[i & 63] * 3; }
int first(int i) { return scale(i) + table[(i * 7) & 63]; }
#else
const unsigned char table[64] = {1, 2, 3, [40] = 5};
int scale(int i) { return i / 100; }
#endif
