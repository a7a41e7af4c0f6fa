//! How tight clusters are, and which of their points is in the middle.

use crate::point::ClusterError;
use crate::ward::{Dendrogram, squares};

/// The members of each cluster; labels count from 0 without gaps.
fn members(labels: &[usize]) -> Vec<Vec<usize>> {
    let clusters = labels.iter().max().map_or(0, |most| most + 1);
    let mut members = vec![Vec::new(); clusters];
    for (point, label) in labels.iter().enumerate() {
        members[*label].push(point);
    }
    members
}

/// The centroid of each cluster of `points`.
#[must_use]
pub fn centroids(points: &[Vec<f64>], labels: &[usize]) -> Vec<Vec<f64>> {
    let width = points.first().map_or(0, Vec::len);
    let of = |members: Vec<usize>| {
        let mut sum = vec![0.0; width];
        for point in &members {
            for (sum, value) in sum.iter_mut().zip(&points[*point]) {
                *sum += value;
            }
        }
        let count = members.len().max(1) as f64;
        sum.iter_mut().for_each(|s| *s /= count);
        sum
    };
    members(labels).into_iter().map(of).collect()
}

/// The points of each cluster by rising distance from its centroid: the first is the medoid that represents it (CERE thesis, 4.3.2).
/// Of equal ones the first comes first.
#[must_use]
pub fn by_distance(points: &[Vec<f64>], labels: &[usize]) -> Vec<Vec<usize>> {
    let centroids = centroids(points, labels);
    let mut all = members(labels);
    for (members, centroid) in all.iter_mut().zip(&centroids) {
        let mut keyed: Vec<(f64, usize)> = members
            .iter()
            .map(|p| (squares(&points[*p], centroid), *p))
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        *members = keyed.into_iter().map(|(_, point)| point).collect();
    }
    all
}

/// The sum of squared distances of points from the centroids of their clusters.
#[must_use]
pub fn within(points: &[Vec<f64>], labels: &[usize]) -> f64 {
    let centroids = centroids(points, labels);
    let each = points.iter().zip(labels);
    each.map(|(point, label)| squares(point, &centroids[*label]))
        .sum()
}

/// [`within`] over the number of points, for 1, 2, ... clusters up to one for each point: the average within-cluster variance that
/// the elbow is sought in. Each merge adds half the square of its height.
///
/// # Errors
/// The tree is of another number of points.
pub fn variances(points: &[Vec<f64>], tree: &Dendrogram) -> Result<Vec<f64>, ClusterError> {
    if tree.points != points.len() || !tree.is_whole() {
        return Err(ClusterError::Clusters {
            clusters: tree.points,
            points: points.len(),
        });
    }
    let mut sum = 0.0;
    let mut curve = vec![0.0];
    for merge in &tree.merges {
        sum += merge.height * merge.height / 2.0;
        curve.push(sum / points.len() as f64);
    }
    curve.reverse();
    Ok(curve)
}

/// Number of clusters at the elbow of `curve`, whose first value is that of one cluster: where it lies farthest below the line from
/// its first to its last value, both axes scaled to 1 (Satopää et al., Finding a "Kneedle" in a haystack, 2011). The thesis names no
/// criterion; this one has no parameter. Of equal ones the first; 1 for a curve that never falls.
#[must_use]
pub fn elbow(curve: &[f64]) -> usize {
    let (Some(first), Some(last)) = (curve.first(), curve.last()) else {
        return 1;
    };
    let fall = first - last;
    if fall <= 0.0 || curve.len() < 3 {
        return 1;
    }
    let steps = (curve.len() - 1) as f64;
    let mut best = (1, 0.0);
    for (place, value) in curve.iter().enumerate() {
        let below = 1.0 - place as f64 / steps - (value - last) / fall;
        if below > best.1 + 1e-12 {
            best = (place + 1, below);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ward::ward;
    use proptest::prelude::*;

    #[test]
    fn elbows() {
        assert_eq!(elbow(&[]), 1);
        assert_eq!(elbow(&[3.0]), 1);
        assert_eq!(elbow(&[3.0, 0.0]), 1);
        assert_eq!(elbow(&[2.0, 2.0, 2.0]), 1);
        // A straight line has none.
        assert_eq!(elbow(&[4.0, 3.0, 2.0, 1.0, 0.0]), 1);
        // Three tight groups: the curve falls up to the third cluster.
        assert_eq!(elbow(&[10.0, 5.0, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]), 3);
        // Below the line by 0.3 at two clusters, by 0.35 at three.
        assert_eq!(elbow(&[1.0, 0.5, 0.25, 0.125, 0.0625, 0.0]), 3);
    }

    #[test]
    fn the_medoid_is_next_to_the_centroid() {
        let points: Vec<Vec<f64>> = [0.0, 1.0, 5.0, 20.0, 22.0].map(|x| vec![x]).to_vec();
        let labels = [0, 0, 0, 1, 1];
        assert_eq!(centroids(&points, &labels), [vec![2.0], vec![21.0]]);
        assert_eq!(by_distance(&points, &labels), [vec![1, 0, 2], vec![3, 4]]);
        assert_eq!(within(&points, &labels), 4.0 + 1.0 + 9.0 + 2.0);
    }

    proptest! {
        #[test]
        fn variances_are_those_of_the_cuts(
            points in prop::collection::vec(prop::collection::vec(-9.0f64..9.0, 3), 1..25)
        ) {
            let tree = ward(&points).unwrap();
            prop_assert!(tree.is_whole());
            let curve = variances(&points, &tree).unwrap();
            prop_assert_eq!(curve.len(), points.len());
            for (place, value) in curve.iter().enumerate() {
                let labels = tree.cut(place + 1).unwrap();
                prop_assert_eq!(labels.iter().max(), Some(&place));
                let mean = within(&points, &labels) / points.len() as f64;
                prop_assert!((mean - value).abs() < 1e-9, "{mean} {value}");
            }
            prop_assert!(curve.windows(2).all(|w| w[0] >= w[1] - 1e-12));
            let mut order = tree.order();
            order.sort_unstable();
            prop_assert_eq!(order, (0..points.len()).collect::<Vec<_>>());
        }
    }
}
