//! Order statistics of a sample.

/// A statistic of no values was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sample without values has no median")]
pub struct EmptySample;

/// Minimum, quartiles and maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Smallest value.
    pub min: f64,
    /// Lower quartile.
    pub lower: f64,
    /// Median.
    pub median: f64,
    /// Upper quartile.
    pub upper: f64,
    /// Largest value.
    pub max: f64,
}

impl Spread {
    /// Of `values`, in any order; quantiles interpolate linearly between ranks (type 7 of Hyndman and Fan).
    pub fn of(values: &[f64]) -> Result<Self, EmptySample> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1).ok_or(EmptySample)?;
        let at = |q: f64| {
            let rank = q * last as f64;
            let (low, high) = (rank.floor() as usize, rank.ceil() as usize);
            sorted[low] + (sorted[high] - sorted[low]) * (rank - low as f64)
        };
        Ok(Self {
            min: sorted[0],
            lower: at(0.25),
            median: at(0.5),
            upper: at(0.75),
            max: sorted[last],
        })
    }

    /// Interquartile range over the median: 0 for a steady sample.
    pub fn relative(&self) -> f64 {
        if self.median == 0.0 {
            0.0
        } else {
            (self.upper - self.lower) / self.median
        }
    }
}

/// The median of `values`, in any order: for an even number the mean of the two middle ones; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values).ok().map(|spread| spread.median)
}

/// The weighted median of `values` (value, weight): the minimum value such that it and those below it have half of the weight.
/// `None` without values.
pub fn weighted_median(mut values: Vec<(f64, f64)>) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|v| v.1).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let found = values.iter().find(|(_, weight)| {
        below += weight;
        below >= half
    });
    found.map(|v| v.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_values_count_more() {
        let median = |values: &[(f64, f64)]| weighted_median(values.to_vec());
        assert_eq!(median(&[(9.0, 1.0), (5.0, 1.0), (7.0, 1.0)]), Some(7.0));
        assert_eq!(median(&[(9.0, 5.0), (5.0, 1.0), (7.0, 1.0)]), Some(9.0));
        // 5 alone has half of the weight.
        assert_eq!(median(&[(9.0, 1.0), (5.0, 2.0), (7.0, 1.0)]), Some(5.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_middle_of_none_is_none() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, 4.0]), Some(2.5));
    }

    #[test]
    fn quartiles() {
        let s = Spread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(
            (s.min, s.lower, s.median, s.upper, s.max),
            (1.0, 1.75, 2.5, 3.25, 4.0)
        );
        assert_eq!(s.relative(), 0.6);
        assert_eq!(Spread::of(&[7.0]).unwrap().relative(), 0.0);
        assert_eq!(Spread::of(&[0.0, 0.0]).unwrap().relative(), 0.0);
        assert_eq!(Spread::of(&[]), Err(EmptySample));
    }
}
