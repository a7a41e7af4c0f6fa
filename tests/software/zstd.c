// zstd compresses and decompresses a text at two levels; its decoder holds an assembler file.
//@ levels: -O2 -g
//@ build: cd . && for f in $SOURCES/zstd/lib/common/*.c $SOURCES/zstd/lib/compress/*.c $SOURCES/zstd/lib/decompress/*.c $SOURCES/zstd/lib/decompress/*.S; do $CC $FLAGS -w -c $f; done; ar rcs libzstd.a *.o; $CC $FLAGS -I$SOURCES/zstd/lib $DIR/zstd.c -L. -lzstd -lpthread -o program
//@ capture: ZSTD_*
//@ capture: HUF_*
//@ capture: FSE_*
//@ codelets: 15
#include "input.h"
#include "zstd.h"

int main(void) {
    static const int levels[] = {1, 3, 12};
    size_t size = 900000;
    char *text = malloc(size), *packed = malloc(2 * size), *back = malloc(size);
    size = make_input(text, size);
    for (int i = 0; i < 3; i++) {
        size_t packed_size = ZSTD_compress(packed, 2 * size, text, size, levels[i]);
        size_t back_size = ZSTD_decompress(back, size, packed, packed_size);
        printf("%zu %lx %d\n", packed_size, checksum(packed, packed_size), back_size == size && !memcmp(text, back, size));
    }
    return 0;
}
