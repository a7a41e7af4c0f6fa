_Thread_local double shared = 2.5;
static _Thread_local long count = 77;

void bump(int n) {
    for (int i = 0; i < n; i++) {
        count += i;
        shared += 1.0 / (double)count;
    }
}
