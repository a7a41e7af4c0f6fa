//! Random partitions: what a clustering has to beat.

use crate::point::ClusterError;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng, seq::SliceRandom};

/// A partition of `points` points into exactly `clusters` clusters: `clusters` random points get one each, the others one at random,
/// each as likely as any other.
///
/// # Errors
/// No cluster is asked for, or more than there are points.
pub fn random_partition(
    points: usize,
    clusters: usize,
    seed: u64,
) -> Result<Vec<usize>, ClusterError> {
    if clusters == 0 || clusters > points {
        return Err(ClusterError::Clusters { clusters, points });
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..points).collect();
    order.shuffle(&mut random);
    let mut labels = vec![0; points];
    for (place, point) in order.into_iter().enumerate() {
        labels[point] = match place < clusters {
            true => place,
            false => random.random_range(0..clusters),
        };
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clusters_have_points() {
        for (points, clusters) in [(1, 1), (5, 5), (7, 1), (30, 11)] {
            for seed in 0..50 {
                let labels = random_partition(points, clusters, seed).unwrap();
                assert_eq!(labels.len(), points);
                assert!((0..clusters).all(|c| labels.contains(&c)));
                assert_eq!(labels, random_partition(points, clusters, seed).unwrap());
            }
        }
        assert!(random_partition(3, 4, 0).is_err() && random_partition(3, 0, 0).is_err());
    }

    #[test]
    fn each_cluster_is_as_likely() {
        let mut counts = [0u32; 4];
        for seed in 0..4000 {
            counts[random_partition(10, 4, seed).unwrap()[3]] += 1;
        }
        // Chi square with three degrees of freedom: 16.3 is exceeded once in a thousand.
        let chi: f64 = counts
            .iter()
            .map(|c| (f64::from(*c) - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(chi < 16.3, "{counts:?}");
    }
}
