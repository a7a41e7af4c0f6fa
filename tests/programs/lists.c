// Linked lists and trees built before the region, walked, changed and grown inside.
//@ codelets: 4
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next;
    long value;
};
struct tree {
    struct tree *left, *right;
    int key, hits;
};

static struct tree *insert(struct tree *t, int key) {
    if (!t) {
        t = calloc(1, sizeof *t);
        t->key = key;
        return t;
    }
    if (key < t->key)
        t->left = insert(t->left, key);
    else if (key > t->key)
        t->right = insert(t->right, key);
    else
        t->hits++;
    return t;
}

static long depth(const struct tree *t) {
    if (!t)
        return 0;
    long l = depth(t->left), r = depth(t->right);
    return 1 + (l > r ? l : r);
}

int main(void) {
    struct node *head = NULL;
    unsigned seed = 1;
    for (int i = 0; i < 2000; i++) {
        struct node *n = malloc(sizeof *n);
        seed = seed * 1103515245u + 12345u;
        *n = (struct node){head, seed >> 8};
        head = n;
    }
    struct tree *root = NULL;
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1103515245u + 12345u;
        root = insert(root, (int)(seed >> 16) % 1000);
    }
    // Reverses the list in place.
    struct node *reversed = NULL;
    while (head) {
        struct node *next = head->next;
        head->next = reversed;
        reversed = head;
        head = next;
    }
    long sum = 0;
    for (struct node *n = reversed; n; n = n->next)
        sum = sum * 31 + n->value;
    printf("%ld %ld %d\n", sum, depth(root), root->hits);
}
