//! What a variant gains, with the uncertainty of its measurements.

/// Time of a variant over that of the code as built; below 1 it is faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Median of the ratios.
    pub ratio: f64,
    /// Lower end of the interval that holds it with 95 %; of fewer than 6 ratios the least of them.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What times of a variant tell, each over that of the code as built just before and after it: a machine that others share
/// changes its speed within seconds, so that only neighbours in time compare. The interval is between order statistics
/// ([`crate::interval`]). None of no ratios, or if one is not positive and finite.
pub fn gain(ratios: &[f64]) -> Option<Gain> {
    let mut ratios = ratios.to_vec();
    if !ratios.iter().all(|r| r.is_finite() && *r > 0.0) {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let (low, high, _) = crate::interval(&ratios, 0.95)?;
    Some(Gain {
        ratio: median(&ratios),
        low,
        high,
    })
}

/// The median of rising values; NaN of none.
pub(crate) fn median(rising: &[f64]) -> f64 {
    let middle = rising.len() / 2;
    match rising.get(middle) {
        None => f64::NAN,
        Some(upper) if rising.len() % 2 == 1 => *upper,
        Some(upper) => f64::midpoint(rising[middle - 1], *upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[1.0, 4.0]), 2.5);
        assert_eq!(median(&[1.0, 5.0, 9.0]), 5.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn no_ratios_no_gain() {
        assert_eq!(gain(&[]), None);
        assert_eq!(gain(&[1.0, 0.0]), None);
        assert_eq!(gain(&[f64::NAN]), None);
        let one = Gain {
            ratio: 0.5,
            low: 0.5,
            high: 0.5,
        };
        assert_eq!(gain(&[0.5]), Some(one));
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
