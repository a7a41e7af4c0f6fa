// An intrusive list on the stack that a loop fills and code behind it walks.
//@ codelets: 3
#include <cstdio>
#include <vector>

struct Node {
    Node *next;
    int v;
};
static Node *head;

__attribute__((noinline)) static int sum() {
    int s = 0;
    for (Node *p = head; p; p = p->next)
        s += p->v;
    return s;
}

__attribute__((noinline)) static int run(int n) {
    Node pool[32];
    head = nullptr;
    for (int i = 0; i < n; i++) {
        pool[i] = Node{head, i};
        head = &pool[i];
    }
    std::vector<int> w(1000, 3);
    for (auto &x : w)
        x *= n;
    return sum() + w[5];
}

int main(int argc, char **) { std::printf("%d\n", run(20 + argc)); }
