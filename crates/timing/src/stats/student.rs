//! Student's distribution.

/// Two-sided 95 % quantiles of Student's t, for 1 to 30 degrees of freedom (Fisher and Yates, table III).
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Half the width of a 95 % interval in standard deviations that were estimated from so many degrees of freedom. Without any, that of
/// one; beyond 30, by the first two terms of the expansion around the normal quantile.
#[must_use]
pub fn student(freedom: usize) -> f64 {
    const NORMAL: f64 = 1.959_964;
    match QUANTILES.get(freedom.saturating_sub(1)) {
        Some(quantile) => *quantile,
        None => NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * freedom as f64),
    }
}

/// The 95 % interval of a positive value whose logarithm has this standard deviation, estimated from so many degrees of freedom.
#[must_use]
pub fn around(value: f64, deviation: f64, freedom: usize) -> (f64, f64) {
    let width = student(freedom) * deviation;
    (value * (-width).exp(), value * width.exp())
}

/// The 95 % interval of `value`, an average of `rounds`: by the spread of their logarithms over the root of their number. None of
/// fewer than two rounds.
#[must_use]
pub fn around_rounds(value: f64, rounds: &[f64]) -> Option<(f64, f64)> {
    let count = rounds.len() as f64;
    let freedom = rounds.len().checked_sub(1).filter(|f| *f > 0)?;
    let mean = rounds.iter().map(|r| r.ln()).sum::<f64>() / count;
    let squares: f64 = rounds.iter().map(|r| (r.ln() - mean).powi(2)).sum();
    let deviation = (squares / freedom as f64 / count).sqrt();
    deviation
        .is_finite()
        .then(|| around(value, deviation, freedom))
}

#[cfg(test)]
mod tests {
    use super::{around, around_rounds, student};

    #[test]
    fn intervals_of_rounds() {
        assert_eq!(around_rounds(2.0, &[2.0]), None);
        assert_eq!(around_rounds(2.0, &[2.0, 2.0]), Some((2.0, 2.0)));
        // Logarithms -d, 0, d: a standard deviation of d, over the root of 3.
        let d = 0.01f64;
        let (low, high) = around_rounds(1.0, &[(-d).exp(), 1.0, d.exp()]).unwrap();
        assert!((high.ln() - 4.303 * d / 3f64.sqrt()).abs() < 1e-9);
        assert!((low * high - 1.0).abs() < 1e-12);
        assert_eq!(around(3.0, 0.0, 5), (3.0, 3.0));
        assert_eq!(around_rounds(1.0, &[0.0, 1.0]), None);
    }

    #[test]
    fn published_quantiles() {
        let near = |freedom, quantile: f64| (student(freedom) - quantile).abs() < 2e-3;
        assert!(near(1, 12.706) && near(10, 2.228) && near(30, 2.042));
        assert!(near(40, 2.021) && near(60, 2.000) && near(120, 1.980));
        assert_eq!(student(0), student(1));
    }
}
