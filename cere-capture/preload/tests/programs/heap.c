/* Memory allocated before a region, inside it and across it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *kept[64];
void *aligned;

__attribute__((noinline)) static void work(int n) {
    for (int i = 0; i < n; i++) {
        kept[i] = realloc(kept[i], 100 + 50 * (size_t)i);
        char *fresh = calloc(3, 100);
        sprintf(fresh, "%s-%d-%d", kept[i], i, fresh[299]);
        if (i % 2) {
            free(kept[i]);
            kept[i] = fresh;
        } else
            free(fresh);
        if (i == 5 && posix_memalign(&aligned, 4096, 100)) abort();
    }
}

int main(void) {
    for (int i = 0; i < 64; i++) kept[i] = strdup("before");
    work(64);
    work(32);
    printf("%d\n", (int)((unsigned long)aligned % 4096));
    for (int i = 0; i < 64; i++) {
        kept[i] = realloc(kept[i], 1000);
        printf("%s ", kept[i]);
        free(kept[i]);
    }
    free(aligned);
    puts("");
    return 0;
}
