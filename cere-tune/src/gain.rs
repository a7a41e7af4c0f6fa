//! What a variant gains, with the uncertainty of its measurements.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

/// Samples that an interval is taken from; its ends are then known to some hundredth of its width.
const RESAMPLES: usize = 2000;

/// Median time of a variant over that of the code as built; below 1 it is faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Ratio of the medians.
    pub ratio: f64,
    /// Lower end of the interval that holds the ratio with 95 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Times of a variant against those of the code as built, in one unit; which were measured together does not matter.
/// The interval is the percentile bootstrap's (Efron), reproducible by its seed. None if either has no times, or one
/// that is not positive and finite.
pub fn gain(default: &[f64], variant: &[f64], seed: u64) -> Option<Gain> {
    let sound =
        |times: &[f64]| !times.is_empty() && times.iter().all(|t| t.is_finite() && *t > 0.0);
    if !sound(default) || !sound(variant) {
        return None;
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut base, mut other) = (default.to_vec(), variant.to_vec());
    let ratio = median(&mut other) / median(&mut base);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            resample(variant, &mut other, &mut rng);
            resample(default, &mut base, &mut rng);
            median(&mut other) / median(&mut base)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |quantile: f64| ratios[(quantile * (RESAMPLES - 1) as f64).round() as usize];
    Some(Gain {
        ratio,
        low: at(0.025),
        high: at(0.975),
    })
}

fn resample(values: &[f64], into: &mut [f64], rng: &mut impl Rng) {
    for slot in into {
        *slot = values[rng.random_range(0..values.len())];
    }
}

/// Of values that are not empty; reorders them.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if even => f64::midpoint(lower, *upper),
        _ => *upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0]), 3.0);
        assert_eq!(median(&mut [4.0, 1.0]), 2.5);
        assert_eq!(median(&mut [9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&mut [4.0, 3.0, 1.0, 2.0]), 2.5);
    }

    #[test]
    fn no_times_no_gain() {
        assert_eq!(gain(&[], &[1.0], 0), None);
        assert_eq!(gain(&[1.0], &[], 0), None);
        assert_eq!(gain(&[0.0], &[1.0], 0), None);
        assert_eq!(gain(&[1.0], &[f64::NAN], 0), None);
        let one = Gain {
            ratio: 0.5,
            low: 0.5,
            high: 0.5,
        };
        assert_eq!(gain(&[2.0], &[1.0], 0), Some(one));
    }

    #[test]
    fn reproducible_whatever_the_order() {
        let base = [10.0, 10.2, 9.9, 10.1, 10.4];
        let fast = [8.0, 8.1, 8.3, 7.9];
        let found = gain(&base, &fast, 1).unwrap();
        assert_eq!(gain(&base, &fast, 1), Some(found));
        assert!((found.ratio - 8.05 / 10.1).abs() < 1e-12);
        assert!(found.low < found.ratio && found.ratio < found.high && found.high < 0.85);
        let back = gain(&fast, &base, 1).unwrap();
        assert!(back.low > 1.15);
    }

    /// Of many experiments whose truth is known, about 95 % have it in their interval.
    #[test]
    fn intervals_hold_the_truth() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut times = |centre: f64| -> Vec<f64> {
            (0..21)
                .map(|_| centre * (0.9 + 0.2 * rng.random::<f64>()))
                .collect()
        };
        let mut held = 0;
        for seed in 0..200 {
            let (base, other) = (times(1.0), times(0.8));
            let found = gain(&base, &other, seed).unwrap();
            held += usize::from(found.low <= 0.8 && 0.8 <= found.high);
        }
        assert!((180..=199).contains(&held), "{held} of 200");
    }
}
