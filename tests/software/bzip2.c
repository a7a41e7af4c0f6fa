// bzip2 compresses and decompresses a text.
//@ levels: -O2
//@ build: for f in blocksort huffman crctable randtable compress decompress bzlib; do $CC $FLAGS -w -DBZ_NO_STDIO -c $SOURCES/bzip2-1.0.8/$f.c; done; ar rcs libbz2.a *.o; echo 'void bz_internal_error(int e) { (void)e; }' > error.c; $CC $FLAGS -I$SOURCES/bzip2-1.0.8 $DIR/bzip2.c error.c -L. -lbz2 -o program
//@ loop-refused: * ~ several entries
//@ codelets: 10
#include "input.h"
#define BZ_NO_STDIO
#include "bzlib.h"

int main(void) {
    unsigned size = 600000, packed_size = 700000, back_size = 600000;
    char *text = malloc(size), *packed = malloc(packed_size), *back = malloc(back_size);
    size = (unsigned)make_input(text, size);
    int a = BZ2_bzBuffToBuffCompress(packed, &packed_size, text, size, 5, 0, 30);
    int b = BZ2_bzBuffToBuffDecompress(back, &back_size, packed, packed_size, 0, 0);
    printf("%d %d %u %u %lx %d\n", a, b, packed_size, back_size, checksum(packed, packed_size), back_size == size && !memcmp(text, back, size));
    return 0;
}
