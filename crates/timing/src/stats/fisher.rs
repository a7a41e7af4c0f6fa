//! Whether failures come with a choice more often than by chance.

/// Fisher's exact test, one-sided: the probability that `failed` or more of `tried`, drawn from `all` of which `failures`
/// failed, are failures.
///
/// `failed` is at most `tried` and `failures`, and those are at most `all`.
pub fn fisher(failed: usize, tried: usize, failures: usize, all: usize) -> f64 {
    let mut logs = vec![0.0; all + 1];
    for n in 1..=all {
        logs[n] = logs[n - 1] + (n as f64).ln();
    }
    let choose = |n: usize, k: usize| logs[n] - logs[k] - logs[n - k];
    let least = failed.max((tried + failures).saturating_sub(all));
    let ways = (least..=tried.min(failures))
        .map(|k| choose(failures, k) + choose(all - failures, tried - k) - choose(all, tried));
    ways.map(f64::exp).sum()
}

#[cfg(test)]
mod tests {
    use super::fisher;

    #[test]
    fn probabilities() {
        // 4 red of 10; of 3 drawn, 2 or more are red: (6 * 6 + 4) / 120.
        assert!((fisher(2, 3, 4, 10) - 40.0 / 120.0).abs() < 1e-12);
        assert!((fisher(0, 3, 4, 10) - 1.0).abs() < 1e-12);
        assert!((fisher(3, 9, 4, 10) - 1.0).abs() < 1e-12);
        assert_eq!(fisher(0, 0, 0, 0), 1.0);
    }
}
