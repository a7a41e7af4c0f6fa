//! Principal components (CERE thesis, 2.3.2 and 4.5.3): fewer coordinates that carry most of what tells points apart, so that
//! metrics which say the same do not count twice.
//!
//! These are nalgebra's eigenvectors of the covariance matrix. Its singular value decomposition (0.35) is wrong for some matrices
//! without full rank, among them two centered points (its issue 1172).

use crate::point::{ClusterError, check, squares, width};
use crate::within::centroid;
use nalgebra::{DMatrix, SymmetricEigen};

/// Decompositions need a few iterations a component; more than these are a failure.
const ITERATIONS: usize = 10_000;

/// The principal components of points, by falling variance. There are as many as the points have coordinates, or one fewer than
/// points if that is less.
#[derive(Debug, Clone, PartialEq)]
pub struct Components {
    /// Share of the variance of all points that each explains, 0 to 1. All 0 if the points are identical.
    pub shares: Vec<f64>,
    /// Standard deviation of the points along each: that of the population (over n), as of [`Scores`](crate::Scores). 0 below
    /// about 1e-7 of the first.
    pub deviations: Vec<f64>,
    /// The direction of each: a unit vector in the coordinates of the points. Its largest entry (of equal ones, the first) is
    /// positive, since the decomposition leaves the sign open.
    pub loadings: Vec<Vec<f64>>,
    /// The points in the new coordinates: a row a point, a value a component.
    pub scores: Vec<Vec<f64>>,
    /// Mean of each coordinate of the points.
    pub means: Vec<f64>,
}

/// The principal components of `points`. Coordinates of different units should be [normalised](crate::z_scores()) before.
///
/// # Errors
/// There are no points; coordinates as in [`ward`](crate::ward()); the decomposition does not converge.
pub fn components(points: &[Vec<f64>]) -> Result<Components, ClusterError> {
    let metrics = width(points)?;
    let number = metrics.min(points.len() - 1);
    let mut found = Components {
        shares: Vec::new(),
        deviations: Vec::new(),
        loadings: Vec::new(),
        scores: vec![Vec::new(); points.len()],
        means: centroid(points, &(0..points.len()).collect::<Vec<_>>()),
    };
    if number == 0 {
        return Ok(found);
    }
    let count = points.len() as f64;
    let value = |point: usize, metric: usize| points[point][metric] - found.means[metric];
    let centered = DMatrix::from_fn(points.len(), metrics, value);
    let covariance = centered.tr_mul(&centered) / count;
    let total = covariance.trace();
    let parts = SymmetricEigen::try_new(covariance, f64::EPSILON, ITERATIONS);
    let parts = parts.ok_or(ClusterError::Components {
        points: points.len(),
        metrics,
    })?;
    // What rounding leaves, of identical points or in a direction without variance, is no variance.
    let size = points
        .iter()
        .map(|p| squares(p, &vec![0.0; metrics]))
        .sum::<f64>()
        / count;
    let bound = (1e-24 * size).max(1e-14 * total);
    let known = |variance: f64| if variance > bound { variance } else { 0.0 };
    let mut all: Vec<_> = parts
        .eigenvalues
        .iter()
        .zip(parts.eigenvectors.column_iter())
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(a.0));
    let total: f64 = all.iter().map(|(variance, _)| known(**variance)).sum();
    for (variance, direction) in all.into_iter().take(number) {
        let variance = known(*variance);
        found
            .shares
            .push(if total > 0.0 { variance / total } else { 0.0 });
        found.deviations.push(variance.sqrt());
        let sign = direction.iter().copied().fold(0.0, larger).signum();
        found
            .loadings
            .push(direction.iter().map(|l| l * sign).collect());
    }
    found.scores = points.iter().map(|point| found.place(point)).collect();
    Ok(found)
}

impl Components {
    /// The least number of components, from the first, that explain at least `share` of the variance: all of them for 1 or more.
    #[must_use]
    pub fn components_for(&self, share: f64) -> usize {
        let mut sum = 0.0;
        let mut enough = |of: &f64| {
            let before = sum;
            sum += of;
            before >= share - 1e-12
        };
        let number = self.shares.iter().position(&mut enough);
        number.unwrap_or(self.shares.len())
    }

    /// A point that was not among the input, in the new coordinates.
    ///
    /// # Errors
    /// Another number of coordinates than the input had; one that is not a number, or beyond 1e100.
    pub fn project(&self, point: &[f64]) -> Result<Vec<f64>, ClusterError> {
        check(0, self.means.len(), point.len(), point.iter().copied())?;
        Ok(self.place(point))
    }

    fn place(&self, point: &[f64]) -> Vec<f64> {
        let along = |direction: &Vec<f64>| -> f64 {
            let centered = point.iter().zip(&self.means).map(|(v, mean)| v - mean);
            centered.zip(direction).map(|(v, l)| v * l).sum()
        };
        self.loadings.iter().map(along).collect()
    }
}

/// The one that is larger in size; the first of equal ones, and of those that differ by rounding alone.
fn larger(one: f64, other: f64) -> f64 {
    match other.abs() > one.abs() * (1.0 + 1e-9) {
        true => other,
        false => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn points_on_a_line() {
        // Along (3, -4) / 5, at -5, 0 and 5 from the mean.
        let points = [[1.0, 9.0], [4.0, 5.0], [7.0, 1.0]].map(Vec::from);
        let found = components(&points).unwrap();
        let near = |one: &[f64], other: &[f64]| squares(one, other) < 1e-20;
        assert!(near(&found.loadings[0], &[-0.6, 0.8]), "{found:?}");
        assert!(near(&found.shares, &[1.0, 0.0]));
        assert!(near(&found.deviations, &[(50.0f64 / 3.0).sqrt(), 0.0]));
        assert!(near(&found.scores[0], &[5.0, 0.0]));
        assert_eq!(found.project(&points[2]), Ok(found.scores[2].clone()));
        assert_eq!(found.components_for(1.0), 1);
        assert_eq!(found.components_for(0.0), 0);
        assert_eq!(found.components_for(2.0), 2);
    }

    #[test]
    fn no_variance() {
        let one = components(&[vec![1.0, 2.0]]).unwrap();
        assert_eq!((one.shares.len(), one.scores), (0, vec![vec![]]));
        let same = components(&vec![vec![0.1, 0.7, 1e9]; 7]).unwrap();
        assert_eq!(same.shares, [0.0; 3]);
        let empty = components(&[vec![], vec![]]).unwrap();
        assert_eq!(empty.components_for(0.9), 0);
        assert_eq!(components(&[]), Err(ClusterError::NoPoints));
        assert!(components(&[vec![1.0], vec![f64::INFINITY]]).is_err());
        assert!(components(&[vec![1.0], vec![]]).is_err());
        assert!(one_more(&same).is_err());
    }

    fn one_more(components: &Components) -> Result<Vec<f64>, ClusterError> {
        components.project(&vec![0.0; components.means.len() + 1])
    }

    proptest! {
        #[test]
        fn distances_stay(
            points in prop::collection::vec(prop::collection::vec(-9.0f64..9.0, 5), 2..12)
        ) {
            let found = components(&points).unwrap();
            prop_assert_eq!(found.shares.len(), 5.min(points.len() - 1));
            prop_assert!((found.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(found.shares.windows(2).all(|w| w[0] >= w[1]));
            for (one, new) in points.iter().zip(&found.scores) {
                for (other, its) in points.iter().zip(&found.scores) {
                    let (before, after) = (squares(one, other), squares(new, its));
                    prop_assert!((before - after).abs() < 1e-9, "{before} {after}");
                }
            }
            for (number, loading) in found.loadings.iter().enumerate() {
                let most = loading.iter().copied().fold(0.0, f64::max);
                prop_assert!(loading.iter().all(|l| l.abs() <= most * (1.0 + 1e-9)));
                for (other, its) in found.loadings.iter().enumerate() {
                    let product: f64 = loading.iter().zip(its).map(|(a, b)| a * b).sum();
                    let wanted = if number == other { 1.0 } else { 0.0 };
                    prop_assert!((product - wanted).abs() < 1e-9);
                }
            }
        }
    }
}
