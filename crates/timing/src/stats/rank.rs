//! Whether two measures put things in the same order.

/// Spearman's rank correlation, -1 to 1: Pearson's of the ranks, equal values having the mean of theirs. None for fewer
/// than two values, for lists of unequal length, and for one that is constant or has a NaN, which has no order.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() || a.len() < 2 || a.iter().chain(b).any(|v| v.is_nan()) {
        return None;
    }
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 + 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        let pairs = x.iter().zip(y);
        pairs.map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    let spread = product(&a, &a) * product(&b, &b);
    (spread > 0.0).then(|| (product(&a, &b) / spread.sqrt()).clamp(-1.0, 1.0))
}

/// From 1 on, equal values having the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|i, j| values[*i].total_cmp(&values[*j]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|i, j| values[*i] == values[*j]) {
        let rank = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        for i in equal {
            ranks[*i] = rank;
        }
        before += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intelligence quotients and hours of television a week, the worked example of Wikipedia's article on Spearman's
    /// coefficient: -29/165.
    #[test]
    fn published_example() {
        let quotients = [
            106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0,
        ];
        let hours = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        let found = spearman(&quotients, &hours).unwrap();
        assert!((found + 29.0 / 165.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn ties_share_their_ranks() {
        assert_eq!(
            ranks(&[5.0, 1.0, 5.0, 0.0, -0.0]),
            [4.5, 3.0, 4.5, 1.5, 1.5]
        );
        // Ranks 1.5, 1.5, 3 and 1, 2, 3: 1.5 over the root of 1.5 times 2.
        let found = spearman(&[1.0, 1.0, 2.0], &[1.0, 2.0, 3.0]).unwrap();
        assert!((found - 0.75f64.sqrt()).abs() < 1e-12, "{found}");
    }

    #[test]
    fn order_alone_counts() {
        let a = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(spearman(&a, &[1.0, 10.0, 11.0, 1e9]), Some(1.0));
        assert_eq!(spearman(&a, &[4.0, 3.0, 2.0, -1.0]), Some(-1.0));
    }

    #[test]
    fn no_order_no_correlation() {
        assert_eq!(spearman(&[], &[]), None);
        assert_eq!(spearman(&[1.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[3.0, 3.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }
}
