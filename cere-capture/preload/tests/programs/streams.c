/* Areas whose pages are touched in known orders, each holding its number from 1. Streams end where pages follow that nobody
   touches. */
#define PAGES 400
#define STEP 512

#define AREA(name) long name[PAGES * STEP] __attribute__((aligned(4096)))
AREA(third);
AREA(rising);
AREA(falling);
AREA(scattered);
AREA(fifth);
AREA(written);
long sum;

static __attribute__((noinline)) void touch_area(int area) {
    if (area == 0)
        for (int i = 0; i < PAGES; i += 3) sum += third[i * STEP];
    else if (area == 1)
        for (int i = 100; i < 300; i++) sum += rising[i * STEP];
    else if (area == 2)
        for (int i = 299; i >= 100; i--) sum += falling[i * STEP];
    else if (area == 3)
        for (int i = 0; i < PAGES; i += 2) sum += scattered[i * 7 % PAGES * STEP];
    else if (area == 4)
        for (int i = 100; i < 300; i++) {
            sum += fifth[i * STEP];
            if (i % 5 == 0) fifth[i * STEP + 1] = i;
        }
    else
        for (int i = 100; i < 300; i++) written[i * STEP + 1] = i;
}

static __attribute__((noinline)) void touch_all(int areas) {
    for (int area = 0; area < areas; area++) touch_area(area);
}

int main(int argc, char **argv) {
    (void)argv;
    long *all[] = {third, rising, falling, scattered, fifth, written};
    for (int a = 0; a < 6; a++)
        for (int i = 0; i < PAGES; i++) all[a][i * STEP] = i + 1;
    touch_all(5 + argc);
    return sum == 0;
}
