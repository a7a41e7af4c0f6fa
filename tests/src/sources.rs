//! Sources that several tests build.

/// A function with one loop, `work(n)`.
pub const WORK: &str = r#"
static long data[5000];
long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += data[i % 5000] += i;
    return sum;
}
"#;
