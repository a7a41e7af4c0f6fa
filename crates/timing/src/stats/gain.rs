//! The gain of a variant with its confidence interval.

use serde::{Deserialize, Serialize};

/// Time of a variant over that of the baseline; below 1 it is faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Median of the ratios.
    pub ratio: f64,
    /// Lower end of the interval of the median; the minimum for fewer than 6 ratios.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that the interval holds the median, 0 to 1: 0.95 or more from 6 ratios on.
    pub level: f64,
}

/// The gain from ratios of neighbours in time ([`crate::stats::Series`]): their median, and its 95 % interval between order
/// statistics ([`crate::stats::interval`]). All comparisons use this estimator; docs/design/measure.md has the experiment that
/// chose it. `None` without ratios, or if one is not positive and finite.
pub fn gain(ratios: &[f64]) -> Option<Gain> {
    gain_with(ratios, 0.95)
}

/// The same, with another probability than 0.95.
pub fn gain_with(ratios: &[f64], confidence: f64) -> Option<Gain> {
    let mut ratios = ratios.to_vec();
    if !ratios.iter().all(|r| r.is_finite() && *r > 0.0) {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let (low, high, ranks) = crate::stats::interval(&ratios, confidence)?;
    Some(Gain {
        ratio: crate::stats::median(&ratios)?,
        low,
        high,
        level: ranks.level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn no_ratios_no_gain() {
        assert_eq!(gain(&[]), None);
        assert_eq!(gain(&[1.0, 0.0]), None);
        assert_eq!(gain(&[f64::NAN]), None);
        let one = gain(&[0.5]).unwrap();
        assert_eq!(
            (one.ratio, one.low, one.high, one.level),
            (0.5, 0.5, 0.5, 0.0)
        );
    }

    #[test]
    fn in_any_order() {
        let found = gain(&[0.9, 0.7, 0.8, 0.6, 1.4, 0.75, 0.85]).unwrap();
        assert_eq!((found.ratio, found.low, found.high), (0.8, 0.6, 1.4));
        // Of 21, the 6th to the 16th.
        let many: Vec<f64> = (1..=21).rev().map(f64::from).collect();
        let found = gain(&many).unwrap();
        assert_eq!((found.ratio, found.low, found.high), (11.0, 6.0, 16.0));
    }

    /// Of many experiments whose truth is known, at least 95 % have it in their interval.
    #[test]
    fn intervals_hold_the_truth() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut held = 0;
        for _ in 0..400 {
            let ratios: Vec<f64> = (0..7)
                .map(|_| 0.8 * (0.7 + 0.6 * rng.random::<f64>()))
                .collect();
            let found = gain(&ratios).unwrap();
            held += usize::from(found.low <= 0.8 && 0.8 <= found.high);
        }
        assert!((380..400).contains(&held), "{held} of 400");
    }
}
