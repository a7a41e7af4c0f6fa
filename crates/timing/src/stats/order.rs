//! The median of a sample and its confidence interval, without any assumption on the distribution.

/// A confidence interval of the median between two order statistics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranks {
    /// Rank of its lower end in the rising sample, from 1.
    pub low: usize,
    /// Rank of its upper end; the two are symmetric: `low + high` is one more than the sample's size.
    pub high: usize,
    /// Probability that the median lies in it, 0 to 1.
    pub level: f64,
}

/// The narrowest symmetric interval for `n` independent values that holds the median with probability `confidence`
/// or more. Samples too small for that (fewer than 6 for 0.95) get the widest interval, and `level` gives its
/// probability. `None` for an empty sample.
///
/// The number of values below the median is binomial with one half, whatever the distribution (Conover, *Practical
/// Nonparametric Statistics*, 3.2; Hahn and Meeker, *Statistical Intervals*, 5.2).
pub fn ranks(n: usize, confidence: f64) -> Option<Ranks> {
    if n == 0 {
        return None;
    }
    // Binomial weights over the central one: neither over- nor underflow matters, whatever `n`.
    let centre = n / 2;
    let both = |k: usize, weight: f64| if n == 2 * k { weight } else { 2.0 * weight };
    let further = |k: usize| k as f64 / (n - k + 1) as f64;
    let (mut weight, mut sum) = (1.0, 0.0);
    for k in (0..=centre).rev() {
        sum += both(k, weight);
        weight *= further(k);
        if weight < f64::EPSILON * 1e-3 {
            break;
        }
    }
    // The interval from rank `low` holds the median when `low` to `n - low` values are below it.
    let (mut weight, mut inside, mut low) = (1.0, 0.0, centre + 1);
    while low > 1 && (low > centre || inside / sum < confidence) {
        low -= 1;
        inside += both(low, weight);
        weight *= further(low);
    }
    Some(Ranks {
        low,
        high: n + 1 - low,
        level: (inside / sum).min(1.0),
    })
}

/// The median of a rising sample: for an even number the mean of the two middle values; 0 for an empty sample.
pub fn median_of_rising(sorted: &[u64]) -> u64 {
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    match sorted.len() % 2 {
        1 => upper,
        _ => sorted
            .get((sorted.len() / 2).wrapping_sub(1))
            .map_or(0, |lower| lower.midpoint(upper)),
    }
}

/// The values at the ends of the median's confidence interval, see [`ranks`].
pub fn interval<T: Copy>(sorted: &[T], confidence: f64) -> Option<(T, T, Ranks)> {
    let ranks = ranks(sorted.len(), confidence)?;
    Some((sorted[ranks.low - 1], sorted[ranks.high - 1], ranks))
}

/// Interquartile ranges above the upper quartile beyond which a value lies far above the others (Tukey's outer fence).
pub const FENCE: u64 = 3;
/// At most one in this many values can count as disturbed.
pub const FAR_AT_MOST: usize = 10;

/// How many of the largest values lie far above the others: more than [`FENCE`] interquartile ranges and more than
/// `margin` above the upper quartile. 0 if they are more than one in [`FAR_AT_MOST`]: such frequent values are the
/// program's own second mode, not disturbances.
pub fn far(sorted: &[u64], margin: u64) -> usize {
    let n = sorted.len();
    if n == 0 {
        return 0;
    }
    let (lower, upper) = (sorted[(n - 1) / 4], sorted[(3 * (n - 1)).div_ceil(4)]);
    let above = ((upper - lower).saturating_mul(FENCE)).max(margin);
    let fence = upper.saturating_add(above);
    let far = n - sorted.partition_point(|v| *v <= fence);
    if far > n / FAR_AT_MOST { 0 } else { far }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks and levels in per cent as tables of the binomial distribution have them.
    #[test]
    fn published_ranks() {
        let published = [
            (6, 1, 96.88),
            (7, 1, 98.44),
            (8, 1, 99.22),
            (9, 2, 96.09),
            (10, 2, 97.85),
            (15, 4, 96.48),
            (20, 6, 95.86),
            (25, 8, 95.67),
            (30, 10, 95.72),
            (50, 18, 96.72),
            (100, 40, 96.48),
        ];
        for (n, low, level) in published {
            let found = ranks(n, 0.95).unwrap();
            assert_eq!((found.low, found.high), (low, n + 1 - low), "{n}");
            assert!((found.level * 100.0 - level).abs() < 0.005, "{n} {found:?}");
        }
    }

    #[test]
    fn small_samples_say_what_they_are_worth() {
        assert_eq!(ranks(0, 0.95), None);
        for (n, level) in [(1, 0.0), (2, 0.5), (3, 0.75), (5, 0.9375)] {
            let found = ranks(n, 0.95).unwrap();
            assert_eq!((found.low, found.high), (1, n));
            assert!((found.level - level).abs() < 1e-12, "{n} {found:?}");
        }
    }

    /// Every rank of every small sample against sums of whole numbers.
    #[test]
    fn exact_for_small_samples() {
        for n in 1..=60usize {
            let mut row = [0u128; 61];
            row[0] = 1;
            for i in 1..=n {
                for k in (1..=i).rev() {
                    row[k] += row[k - 1];
                }
            }
            let level =
                |low: usize| row[low..=n - low].iter().sum::<u128>() as f64 / (1u128 << n) as f64;
            for confidence in [0.5, 0.8, 0.9, 0.95, 0.99, 0.999] {
                let found = ranks(n, confidence).unwrap();
                assert!((found.level - level(found.low)).abs() < 1e-12, "{n}");
                assert!(found.level >= confidence || found.low == 1, "{n} {found:?}");
                let narrower = found.low + 1;
                assert!(
                    2 * narrower > n || level(narrower) < confidence,
                    "{n} {found:?}"
                );
            }
        }
    }

    /// Large samples follow the normal approximation: half a width of 0.98 roots of the size.
    #[test]
    fn large_samples() {
        for (n, low) in [(1000, 469), (1_000_000, 499_020)] {
            let found = ranks(n, 0.95).unwrap();
            assert!(found.low.abs_diff(low) <= 1, "{found:?}");
            assert!((found.level - 0.95).abs() < 0.005);
        }
    }

    #[test]
    fn medians_and_intervals() {
        assert_eq!(
            [&[][..], &[3], &[3, 6], &[1, 2, 9]].map(median_of_rising),
            [0, 3, 4, 2]
        );
        let sample: [u64; 10] = core::array::from_fn(|i| i as u64 * 10);
        let (low, high, ranks) = interval(&sample, 0.95).unwrap();
        assert_eq!((low, high, ranks.low, ranks.high), (10, 80, 2, 9));
    }

    #[test]
    fn a_value_far_above_is_told_from_a_second_mode() {
        let mut sample: [u64; 20] = core::array::from_fn(|i| 1000 + i as u64);
        assert_eq!(far(&sample, 100), 0);
        // The quartiles are 1004 and 1015: at three times their distance a value is not far, nor at the margin.
        for (margin, fence) in [(0, 1048), (100, 1115)] {
            sample[19] = fence;
            assert_eq!(far(&sample, margin), 0, "{fence}");
            sample[19] = fence + 1;
            assert_eq!(far(&sample, margin), 1, "{fence}");
        }
        sample[19] = 5000;
        assert_eq!(far(&sample, 100), 1);
        assert_eq!(far(&sample, 10_000), 0, "within the margin");
        sample[18] = 4000;
        assert_eq!(far(&sample, 100), 2);
        sample[17] = 4000;
        assert_eq!(far(&sample, 100), 0, "too many to be disturbances");
        let steady = [7; 9];
        assert_eq!((far(&steady, 0), far(&[], 0), far(&[1], 0)), (0, 0, 0));
    }
}
