//! k-means, a control of hierarchical clusters: it is not bound to earlier merges, so it shows what those cost.
//!
//! Lloyd, Least squares quantization in PCM, IEEE Trans. Inf. Theory 28, 1982; starts: k-means++ (Arthur and Vassilvitskii,
//! SODA 2007). Own code: linfa-clustering 0.8 would add some 40 crates to these lines, rand 0.8 and a second ndarray among them.

use crate::point::{ClusterError, squares, width};
use crate::within::{centroids, within};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

/// Iterations after which a start ends in any case; a few dozen are usual.
const ITERATIONS: usize = 1000;

/// The partition of `points` into exactly `clusters` clusters, numbered in the order of their first points, that has the least
/// [`within`] of `starts` (0 counts as 1) searches from random points. Another start may find a better one.
///
/// # Errors
/// There are no points; coordinates as in [`ward`](crate::ward()); no cluster is asked for, or more than there are points.
pub fn kmeans(
    points: &[Vec<f64>],
    clusters: usize,
    starts: usize,
    seed: u64,
) -> Result<Vec<usize>, ClusterError> {
    width(points)?;
    if clusters == 0 || clusters > points.len() {
        let points = points.len();
        return Err(ClusterError::Clusters { clusters, points });
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut best: Option<(f64, Vec<usize>)> = None;
    for _ in 0..starts.max(1) {
        let mut labels = start(points, clusters, &mut random);
        for _ in 0..ITERATIONS {
            if !step(points, clusters, &mut labels)? {
                break;
            }
        }
        let sum = within(points, &labels)?;
        if best.as_ref().is_none_or(|(least, _)| sum < *least) {
            best = Some((sum, labels));
        }
    }
    Ok(best.map_or_else(Vec::new, |(_, labels)| in_order(&labels, clusters)))
}

/// k-means++: each center is a point, drawn by its squared distance from the centers before it. Points go to the nearest.
fn start(points: &[Vec<f64>], clusters: usize, random: &mut impl Rng) -> Vec<usize> {
    let mut labels = vec![0; points.len()];
    let mut far = vec![f64::INFINITY; points.len()];
    let mut center = random.random_range(0..points.len());
    for cluster in 0..clusters {
        for ((point, far), label) in points.iter().zip(&mut far).zip(&mut labels) {
            let distance = squares(point, &points[center]);
            if distance < *far {
                (*far, *label) = (distance, cluster);
            }
        }
        // A center keeps its cluster, even if another lies on it, and is not drawn again.
        (far[center], labels[center]) = (f64::NEG_INFINITY, cluster);
        let sum: f64 = far.iter().map(|f| f.max(0.0)).sum();
        let mut left = random.random_range(0.0..=sum);
        for (point, far) in far.iter().enumerate().filter(|(_, far)| **far >= 0.0) {
            // The last one, should rounding leave something.
            center = point;
            left -= far;
            if left < 0.0 {
                break;
            }
        }
    }
    labels
}

/// Moves each point to the cluster whose centroid is nearer than that of its own, unless its own would be left empty; whether
/// any moved.
fn step(points: &[Vec<f64>], clusters: usize, labels: &mut [usize]) -> Result<bool, ClusterError> {
    let centroids = centroids(points, labels)?;
    let mut sizes = vec![0; clusters];
    labels.iter().for_each(|label| sizes[*label] += 1);
    let mut moved = false;
    for (point, label) in points.iter().zip(labels) {
        let mut least = squares(point, &centroids[*label]);
        let own = *label;
        for (cluster, centroid) in centroids.iter().enumerate() {
            let distance = squares(point, centroid);
            if distance < least && sizes[own] > 1 {
                (least, *label) = (distance, cluster);
            }
        }
        if *label != own {
            sizes[own] -= 1;
            sizes[*label] += 1;
            moved = true;
        }
    }
    Ok(moved)
}

/// The same partition, its clusters numbered in the order of their first points.
fn in_order(labels: &[usize], clusters: usize) -> Vec<usize> {
    let mut names = vec![None; clusters];
    let mut next = 0..;
    let name = |label: &usize| {
        names[*label].or_else(|| {
            names[*label] = next.next();
            names[*label]
        })
    };
    labels.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn separate_groups() {
        let near = |x: f64, y: f64| {
            let offsets = [(0.0, 0.0), (0.3, 0.1), (-0.2, 0.4), (0.1, -0.3)];
            offsets.map(|(dx, dy)| vec![x + dx, y + dy])
        };
        let points = [near(5.0, 5.0), near(-5.0, 0.0), near(0.0, 9.0)].concat();
        let labels = kmeans(&points, 3, 5, 1).unwrap();
        assert_eq!(labels, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(kmeans(&points, 3, 5, 1), Ok(labels));
    }

    #[test]
    fn identical_points() {
        let points = vec![vec![2.0, 3.0]; 6];
        for clusters in 1..=6 {
            let labels = kmeans(&points, clusters, 3, 7).unwrap();
            assert_eq!(labels.iter().max(), Some(&(clusters - 1)));
            assert_eq!(within(&points, &labels), Ok(0.0));
        }
        // Points without coordinates.
        assert_eq!(kmeans(&[vec![], vec![]], 2, 1, 1), Ok(vec![0, 1]));
    }

    #[test]
    fn what_has_no_partition() {
        assert_eq!(kmeans(&[], 1, 1, 1), Err(ClusterError::NoPoints));
        for clusters in [0, 3] {
            let error = ClusterError::Clusters {
                clusters,
                points: 2,
            };
            assert_eq!(kmeans(&[vec![1.0], vec![2.0]], clusters, 1, 1), Err(error));
        }
        assert!(kmeans(&[vec![f64::NAN]], 1, 1, 1).is_err());
        assert!(kmeans(&[vec![1.0], vec![]], 1, 1, 1).is_err());
    }

    proptest! {
        #[test]
        fn no_iteration_is_worse(
            points in prop::collection::vec(prop::collection::vec(-9i8..9, 2), 1..40),
            clusters in 1usize..8,
            seed: u64,
        ) {
            let points: Vec<Vec<f64>> = points.iter().map(|p| p.iter().map(|x| f64::from(*x)).collect()).collect();
            let clusters = clusters.min(points.len());
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut labels = start(&points, clusters, &mut random);
            let mut before = within(&points, &labels).unwrap();
            for iteration in 0.. {
                prop_assert!(iteration < 100);
                let moved = step(&points, clusters, &mut labels).unwrap();
                let after = within(&points, &labels).unwrap();
                prop_assert!(after <= before + 1e-9, "{before} {after}");
                before = after;
                if !moved {
                    break;
                }
            }
            let found = kmeans(&points, clusters, 2, seed).unwrap();
            let mut firsts: Vec<usize> = found.clone();
            firsts.dedup();
            let mut seen = 0;
            for label in firsts {
                prop_assert!(label <= seen);
                seen = seen.max(label + 1);
            }
            prop_assert_eq!(seen, clusters);
        }
    }
}
