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
    /// A metric that is not a number, or beyond 1e100 either way: its square would be infinite.
    #[error(
        "point {index} has a metric that is {value}: metrics must be numbers between -1e100 and 1e100"
    )]
    Value {
        /// Which, from 0.
        index: u64,
        /// The value.
        value: f64,
    },
    /// Not one cluster number a point.
    #[error("there are {points} points and {labels} cluster numbers")]
    Labels {
        /// Points.
        points: usize,
        /// Cluster numbers.
        labels: usize,
    },
    /// Cluster numbers count from 0 without gaps.
    #[error("cluster {cluster} of {clusters} has no points")]
    Empty {
        /// Which, from 0.
        cluster: usize,
        /// Clusters there are.
        clusters: usize,
    },
    /// Not one medoid a cluster.
    #[error("there are {clusters} clusters and {medoids} points that stand for them")]
    Medoids {
        /// Clusters.
        clusters: usize,
        /// Medoids.
        medoids: usize,
    },
    /// A point that is not in the cluster that it stands for.
    #[error("point {medoid} stands for cluster {cluster}, but is not in it")]
    Medoid {
        /// Which, from 0.
        medoid: usize,
        /// Its cluster, from 0.
        cluster: usize,
    },
    /// A dendrogram whose merges are not those of one tree of its points, by rising height.
    #[error("{merges} merges do not make one tree of {points} points")]
    Tree {
        /// Points.
        points: usize,
        /// Merges.
        merges: usize,
    },
    /// The eigenvalues of the covariance matrix did not converge.
    #[error("the principal components of {points} points with {metrics} metrics did not converge")]
    Components {
        /// Points.
        points: usize,
        /// Metrics.
        metrics: usize,
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
    /// A probability or share of a genetic search that is not from 0 to 1.
    #[error("the {what} of a genetic search is {value}: it must be from 0 to 1")]
    Share {
        /// Which setting.
        what: &'static str,
        /// Its value.
        value: f64,
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

/// Checks that each of `points` has as many coordinates as the first, all of them numbers whose squares can be added; returns
/// how many.
pub(crate) fn width(points: &[Vec<f64>]) -> Result<usize, ClusterError> {
    let of = points.first().ok_or(ClusterError::NoPoints)?.len();
    for (index, point) in (0..).zip(points) {
        check(index, of, point.len(), point.iter().copied())?;
    }
    Ok(of)
}

/// Checks that point `index` has `of` metrics, and its known `values`.
pub(crate) fn check(
    index: u64,
    of: usize,
    metrics: usize,
    mut values: impl Iterator<Item = f64>,
) -> Result<(), ClusterError> {
    if metrics != of {
        return Err(ClusterError::Metrics { index, metrics, of });
    }
    match values.find(|v| v.is_nan() || v.abs() > 1e100) {
        Some(value) => Err(ClusterError::Value { index, value }),
        None => Ok(()),
    }
}

/// Squared Euclidean distance.
pub(crate) fn squares(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Whether a weight or a dissimilarity is valid: finite and not negative.
pub(crate) fn valid(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}
