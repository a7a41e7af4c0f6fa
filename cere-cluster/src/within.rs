//! How tight clusters are, and which of their points is in the middle.

use crate::point::{ClusterError, squares, width};
use crate::ward::Dendrogram;

/// The members of each cluster of `points`.
fn members(points: &[Vec<f64>], labels: &[usize]) -> Result<Vec<Vec<usize>>, ClusterError> {
    width(points)?;
    if points.len() != labels.len() {
        let (points, labels) = (points.len(), labels.len());
        return Err(ClusterError::Labels { points, labels });
    }
    let clusters = labels.iter().max().map_or(0, |most| most.saturating_add(1));
    let mut members = vec![Vec::new(); clusters.min(points.len())];
    for (point, label) in labels.iter().enumerate() {
        // A number that reaches over the points leaves a gap below it.
        if let Some(members) = members.get_mut(*label) {
            members.push(point);
        }
    }
    match members.iter().position(Vec::is_empty) {
        Some(cluster) => Err(ClusterError::Empty { cluster, clusters }),
        None => Ok(members),
    }
}

/// The mean of those `points`.
pub(crate) fn centroid(points: &[Vec<f64>], members: &[usize]) -> Vec<f64> {
    let mut sum = vec![0.0; points.first().map_or(0, Vec::len)];
    for point in members {
        for (sum, value) in sum.iter_mut().zip(&points[*point]) {
            *sum += value;
        }
    }
    let count = members.len().max(1) as f64;
    sum.iter_mut().for_each(|s| *s /= count);
    sum
}

/// The centroid of each cluster of `points`. `labels` is a partition: a cluster number for each point, from 0 without gaps.
///
/// # Errors
/// There are no points; coordinates as in [`ward`](crate::ward()); no partition.
pub fn centroids(points: &[Vec<f64>], labels: &[usize]) -> Result<Vec<Vec<f64>>, ClusterError> {
    let all = members(points, labels)?;
    Ok(all.iter().map(|of| centroid(points, of)).collect())
}

/// The points of each cluster by rising distance from its centroid; of equal ones the lowest index first.
///
/// # Errors
/// As [`centroids`].
pub fn by_distance(points: &[Vec<f64>], labels: &[usize]) -> Result<Vec<Vec<usize>>, ClusterError> {
    let mut all = members(points, labels)?;
    for members in &mut all {
        let centroid = centroid(points, members);
        let far = |p: &usize| squares(&points[*p], &centroid);
        // Stable.
        members.sort_by(|a, b| far(a).total_cmp(&far(b)));
    }
    Ok(all)
}

/// The member of each cluster that is nearest to its centroid, and so represents it (CERE thesis, 4.3.1); of equal ones that
/// with the lowest index.
///
/// # Errors
/// As [`centroids`].
pub fn medoids(points: &[Vec<f64>], labels: &[usize]) -> Result<Vec<usize>, ClusterError> {
    Ok(by_distance(points, labels)?
        .into_iter()
        .map(|m| m[0])
        .collect())
}

/// The other members of each cluster by falling distance from its medoid: where the assumption that they behave like it is
/// likeliest to fail. Of equal ones the lowest index first.
///
/// # Errors
/// As [`centroids`]; `medoids` are not one member of each cluster.
pub fn farthest(
    points: &[Vec<f64>],
    labels: &[usize],
    medoids: &[usize],
) -> Result<Vec<Vec<usize>>, ClusterError> {
    let mut all = members(points, labels)?;
    if medoids.len() != all.len() {
        let (medoids, clusters) = (medoids.len(), all.len());
        return Err(ClusterError::Medoids { medoids, clusters });
    }
    for (cluster, (members, medoid)) in all.iter_mut().zip(medoids).enumerate() {
        let medoid = *medoid;
        if labels.get(medoid) != Some(&cluster) {
            return Err(ClusterError::Medoid { medoid, cluster });
        }
        members.retain(|p| *p != medoid);
        let far = |p: &usize| squares(&points[*p], &points[medoid]);
        members.sort_by(|a, b| far(b).total_cmp(&far(a)));
    }
    Ok(all)
}

/// The sum of squared distances of points from the centroids of their clusters.
///
/// # Errors
/// As [`centroids`].
pub fn within(points: &[Vec<f64>], labels: &[usize]) -> Result<f64, ClusterError> {
    let centroids = centroids(points, labels)?;
    let each = points.iter().zip(labels);
    Ok(each
        .map(|(point, label)| squares(point, &centroids[*label]))
        .sum())
}

/// [`within`] over the number of points, for 1, 2, ... clusters up to one for each point: the average within-cluster variance that
/// the elbow is sought in. Each merge adds half the square of its height.
///
/// # Errors
/// The tree is of another number of points.
pub fn variances(points: &[Vec<f64>], tree: &Dendrogram) -> Result<Vec<f64>, ClusterError> {
    if tree.points != points.len() || !tree.is_whole() {
        let (points, merges) = (points.len(), tree.merges.len());
        return Err(ClusterError::Tree { points, merges });
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

/// Number of clusters at the elbow of `curve`, whose first value is that of one cluster: where it lies farthest below the chord
/// from its first to its last value, both axes scaled to 1 (Satopää et al., Finding a "Kneedle" in a haystack, 2011). Of equal
/// ones the first; 1 for a curve that never goes below the chord, such as that of two points.
///
/// The thesis (2.3.1) names no criterion. This one has no parameter and no unit; its end is no choice either, because as many
/// clusters as points leave no variance. For a convex curve it is where one more cluster begins to bring less than the mean of
/// all. Points without any groups have an elbow too, at about a third of their number.
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
        // exp(-x / 10) from 0 to 99 has its tangent parallel to the chord, whose slope is (1 - exp(-9.9)) / 99, at 10 ln 9.9 = 22.9.
        let convex: Vec<f64> = (0..100).map(|x| (-f64::from(x) / 10.0).exp()).collect();
        assert_eq!(elbow(&convex), 24);
        let scaled: Vec<f64> = convex.iter().map(|v| v * 1e6 + 7.0).collect();
        assert_eq!(elbow(&scaled), 24);
        // Above the chord everywhere.
        assert_eq!(elbow(&[9.0, 8.9, 8.7, 8.0, 0.0]), 1);
        assert_eq!(elbow(&[f64::NAN, 1.0, 0.0]), 1);
        // Below the line by 0.3 at two clusters, by 0.35 at three.
        assert_eq!(elbow(&[1.0, 0.5, 0.25, 0.125, 0.0625, 0.0]), 3);
    }

    #[test]
    fn the_medoid_is_next_to_the_centroid() {
        let points: Vec<Vec<f64>> = [0.0, 1.0, 5.0, 20.0, 22.0].map(|x| vec![x]).to_vec();
        let labels = [0, 0, 0, 1, 1];
        let centers = centroids(&points, &labels).unwrap();
        assert_eq!(centers, [vec![2.0], vec![21.0]]);
        let order = by_distance(&points, &labels).unwrap();
        assert_eq!(order, [vec![1, 0, 2], vec![3, 4]]);
        assert_eq!(within(&points, &labels), Ok(4.0 + 1.0 + 9.0 + 2.0));
        assert_eq!(medoids(&points, &labels), Ok(vec![1, 3]));
        let far = farthest(&points, &labels, &[1, 3]).unwrap();
        assert_eq!(far, [vec![2, 0], vec![4]]);
        // By distance from the medoid, not from the centroid.
        let far = farthest(&points, &labels, &[2, 4]).unwrap();
        assert_eq!(far, [vec![0, 1], vec![3]]);
    }

    #[test]
    fn what_is_no_partition() {
        let points = vec![vec![0.0], vec![1.0], vec![2.0]];
        let error = |labels: &[usize]| within(&points, labels).unwrap_err().to_string();
        assert_eq!(error(&[0, 0]), "there are 3 points and 2 cluster numbers");
        assert_eq!(error(&[0, 2, 0]), "cluster 1 of 3 has no points");
        assert!(error(&[0, 1, usize::MAX]).starts_with("cluster 2 of"));
        assert!(within(&[], &[]).is_err());
        let not = |medoids: &[usize]| farthest(&points, &[0, 1, 1], medoids).unwrap_err();
        assert_eq!(
            not(&[1, 2]),
            ClusterError::Medoid {
                medoid: 1,
                cluster: 0
            }
        );
        assert_eq!(
            not(&[0, 9]),
            ClusterError::Medoid {
                medoid: 9,
                cluster: 1
            }
        );
        let clusters = 2;
        assert_eq!(
            not(&[0]),
            ClusterError::Medoids {
                medoids: 1,
                clusters
            }
        );
        let tree = ward(&points).unwrap();
        assert!(variances(&points[1..], &tree).is_err());
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
                let mean = within(&points, &labels).unwrap() / points.len() as f64;
                prop_assert!((mean - value).abs() < 1e-9, "{mean} {value}");
            }
            prop_assert!(curve.windows(2).all(|w| w[0] >= w[1] - 1e-12));
            let mut order = tree.order();
            order.sort_unstable();
            prop_assert_eq!(order, (0..points.len()).collect::<Vec<_>>());
        }
    }
}
