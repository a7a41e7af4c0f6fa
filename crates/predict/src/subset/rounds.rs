//! Rounds of a codelet become one time.

/// The time of a codelet: that of its fastest round, as other users of a machine only ever lengthen it.
#[must_use]
pub fn fast(rounds: &[f64]) -> f64 {
    rounds.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Variance of the logarithm of [`fast`] of n rounds: disturbances are taken as exponential, so that the fastest round lies above the
/// undisturbed time by an n-th of the mean distance of the others from it. With a single round, that of 2 %.
pub(crate) fn noise(rounds: &[f64]) -> f64 {
    let least = fast(rounds);
    let count = rounds.len() as f64;
    if rounds.len() < 2 {
        return 0.02f64.powi(2);
    }
    let distances: f64 = rounds.iter().map(|s| (s / least).ln()).sum();
    (distances / (count - 1.0) / count).powi(2)
}
