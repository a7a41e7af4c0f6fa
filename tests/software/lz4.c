// lz4 and its high-compression variant, blocks and frames.
//@ levels: -O3
//@ build: for f in lz4 lz4hc lz4frame xxhash; do $CC $FLAGS -w -DXXH_NAMESPACE=LZ4_ -c $SOURCES/liblz4/lib/$f.c; done; ar rcs liblz4.a *.o; $CC $FLAGS -I$SOURCES/liblz4/lib $DIR/lz4.c -L. -llz4 -o program
//@ loop-refused: * ~ several entries
//@ codelets: 6
#include "input.h"
#include "lz4.h"
#include "lz4frame.h"
#include "lz4hc.h"

int main(void) {
    int size = 800000, room = 1000000;
    char *text = malloc((size_t)size), *packed = malloc((size_t)room), *back = malloc((size_t)size);
    size = (int)make_input(text, (size_t)size);
    int fast = LZ4_compress_default(text, packed, size, room);
    int a = LZ4_decompress_safe(packed, back, fast, size);
    printf("%d %d %lx %d\n", fast, a, checksum(packed, (size_t)fast), !memcmp(text, back, (size_t)size));
    int high = LZ4_compress_HC(text, packed, size, room, 9);
    int b = LZ4_decompress_safe(packed, back, high, size);
    printf("%d %d %lx %d\n", high, b, checksum(packed, (size_t)high), !memcmp(text, back, (size_t)size));
    LZ4F_preferences_t preferences = {.frameInfo = {.contentChecksumFlag = LZ4F_contentChecksumEnabled}};
    size_t frame = LZ4F_compressFrame(packed, (size_t)room, text, (size_t)size, &preferences);
    printf("%zu %lx\n", frame, checksum(packed, frame));
    return 0;
}
