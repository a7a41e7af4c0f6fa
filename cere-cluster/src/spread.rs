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

    /// The quartiles' distance over the median: 0 for a steady sample.
    pub fn relative(&self) -> f64 {
        if self.median == 0.0 {
            0.0
        } else {
            (self.upper - self.lower) / self.median
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles() {
        let s = Spread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(
            (s.min, s.lower, s.median, s.upper, s.max),
            (1.0, 1.75, 2.5, 3.25, 4.0)
        );
        assert_eq!(Spread::of(&[7.0]).unwrap().relative(), 0.0);
        assert_eq!(Spread::of(&[]), Err(EmptySample));
    }
}
