long sum_state = 5;
long scale(long);
long raw(long);

long sum(const long *values, int n) {
    long total = 0;
    for (int i = 0; i < n; i++) {
        total += scale(values[i]) + raw(i);
        sum_state ^= total;
    }
    return total;
}
