//! Points to cluster, and errors of the input.

/// Something with a dissimilarity to others of its kind: symmetric, finite, at least 0, and 0 to itself.
pub trait Point {
    /// The dissimilarity to `other`.
    fn distance(&self, other: &Self) -> f64;
}

impl Point for f64 {
    fn distance(&self, other: &Self) -> f64 {
        (self - other).abs()
    }
}

/// Euclidean.
impl<const N: usize> Point for [f64; N] {
    fn distance(&self, other: &Self) -> f64 {
        let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
        self.iter().zip(other).map(square).sum::<f64>().sqrt()
    }
}

/// Why an input cannot be clustered.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ClusterError {
    /// Nothing to cluster.
    #[error("there are no points to cluster")]
    NoPoints,
    /// No clusters, or more than points.
    #[error("{points} points cannot make {clusters} clusters")]
    Clusters {
        /// Clusters asked for.
        clusters: usize,
        /// Points there are.
        points: usize,
    },
    /// Not one weight a point.
    #[error("there are {points} points and {weights} weights")]
    Weights {
        /// Points.
        points: usize,
        /// Weights.
        weights: usize,
    },
    /// A weight that is negative, infinite or not a number.
    #[error("point {index} has the weight {weight}")]
    Weight {
        /// Which, from 0.
        index: u64,
        /// Its weight.
        weight: f64,
    },
    /// All weights are 0.
    #[error("no point has a weight")]
    NoWeight,
    /// A point with another number of metrics than the first.
    #[error("point {index} has {metrics} metrics, the others {of}")]
    Metrics {
        /// Which, from 0.
        index: u64,
        /// Its metrics.
        metrics: usize,
        /// Those of the others.
        of: usize,
    },
    /// A metric that is infinite or not a number.
    #[error("point {index} has a metric that is {value}")]
    Value {
        /// Which, from 0.
        index: u64,
        /// The value.
        value: f64,
    },
    /// A genetic search without bits, or without two individuals.
    #[error(
        "a genetic search needs bits and two individuals, not {bits} bits and {population} individuals"
    )]
    Population {
        /// Bits of an individual.
        bits: usize,
        /// Individuals.
        population: usize,
    },
    /// A dissimilarity that is negative, infinite or not a number.
    #[error("points {one} and {other} are {distance} apart")]
    Distance {
        /// One, from 0.
        one: u64,
        /// The other.
        other: u64,
        /// Their dissimilarity.
        distance: f64,
    },
}

/// Whether a weight or a dissimilarity is valid: finite and not negative.
pub(crate) fn valid(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}
