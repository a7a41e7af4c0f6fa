// zlib deflates and inflates a text at two levels.
//@ levels: -O3 -g
//@ build: for f in $SOURCES/src/zlib/*.c; do $CC $FLAGS -w -DHAVE_UNISTD_H -D_LARGEFILE64_SOURCE -c $f; done; ar rcs libz.a *.o; $CC $FLAGS -I$SOURCES/src/zlib $DIR/zlib.c -L. -lz -o program
//@ codelets: 10
#include "input.h"
#include "zlib.h"

int main(void) {
    static const int levels[] = {1, 6, 9};
    size_t size = 700000;
    char *text = malloc(size), *packed = malloc(size), *back = malloc(size);
    size = make_input(text, size);
    for (int i = 0; i < 3; i++) {
        uLongf packed_size = 700000, back_size = 700000;
        int a = compress2((Bytef *)packed, &packed_size, (Bytef *)text, size, levels[i]);
        int b = uncompress((Bytef *)back, &back_size, (Bytef *)packed, packed_size);
        printf("%d %d %lu %lx %lx %d\n", a, b, packed_size, checksum(packed, packed_size), crc32(0, (Bytef *)packed, (uInt)packed_size),
               back_size == size && !memcmp(text, back, size));
    }
    return 0;
}
