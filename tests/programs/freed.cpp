// Blocks that are older than the region and that it frees: stores just before are dead, and other flags leave them out. Blocks
// that stay count.
//@ flags: -O0 ; -O1 ; -O3
//@ codelets: 3
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

struct Node {
    Node *next;
    void *owner;
    long value;
    ~Node() {
        owner = nullptr;
        value = -1;
    }
};

static Node *head;
static long *numbers;
static long count;

__attribute__((noinline)) static long drop() {
    long sum = 0;
    while (head) {
        Node *node = head;
        head = node->next;
        sum += node->value;
        delete node;
    }
    return sum;
}

__attribute__((noinline)) static long grow(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        numbers[i] += i;
        if (i % 100 == 99)
            numbers = static_cast<long *>(realloc(numbers, ++count * 8000));
        sum += numbers[i / 2];
    }
    return sum;
}

__attribute__((noinline)) static long forget(std::map<int, std::string> *maps, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        sum += static_cast<long>(maps[i].size());
        maps[i].clear();
    }
    return sum;
}

int main() {
    numbers = static_cast<long *>(calloc(1000, sizeof(long)));
    count = 1;
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 50; i++)
            head = new Node{head, &head, i};
        std::map<int, std::string> maps[8];
        for (int i = 0; i < 80; i++)
            maps[i % 8][i] = std::string(static_cast<std::size_t>(i), 'x');
        std::printf("%ld ", drop());
        std::printf("%ld ", grow(800));
        std::printf("%ld\n", forget(maps, 8));
    }
    free(numbers);
}
