//! PAM against published results, against each choice of medoids there is, and against the exact solution on a line.

use cere_cluster::{ClusterError, Point, line, pam, pam_points};
use proptest::prelude::*;

/// Ruspini, Numerical methods for fuzzy clustering, Inform. Sci. 2, 1970.
const RUSPINI: [[f64; 2]; 75] = include!("../ruspini.in");

fn sizes(assignment: &[usize]) -> Vec<usize> {
    let clusters = assignment.iter().max().map_or(0, |m| m + 1);
    let size = |c| assignment.iter().filter(|a| **a == c).count();
    (0..clusters).map(size).collect()
}

/// As `pam(ruspini, k)` of R's package cluster (tests/pam.Rout.save there) has them: medoids from 1, and the mean
/// dissimilarity after BUILD and after SWAP.
#[test]
fn ruspini() {
    for (medoids, build, swap) in [
        (vec![17, 32, 52], 25.68229, 21.59293),
        (vec![10, 32, 52, 70], 17.22898, 11.48637),
        (vec![10, 32, 47, 52, 70], 12.09864, 10.39579),
    ] {
        let found = pam_points(&RUSPINI, &[1.0; 75], medoids.len()).unwrap();
        let from_one: Vec<usize> = found.medoids.iter().map(|m| m + 1).collect();
        assert_eq!(from_one, medoids);
        assert!((found.build_cost / 75.0 - build).abs() < 5e-6, "{found:?}");
        assert!((found.cost / 75.0 - swap).abs() < 5e-6, "{found:?}");
    }
    let four = pam_points(&RUSPINI, &[1.0; 75], 4).unwrap();
    assert_eq!(sizes(&four.assignment), [20, 23, 17, 15]);
    assert_eq!(pam_points(&RUSPINI, &[1.0; 75], 4).unwrap(), four);
}

/// Kaufman and Rousseeuw, Finding Groups in Data, chapter 2: of these ten objects the tables there try 1 and 5 as medoids
/// (mean dissimilarity 9.37), then 4 and 8 (2.30). The best are 3 and 8 (2.19).
#[test]
fn ten_objects() {
    let points = [
        [1.0, 4.0],
        [5.0, 1.0],
        [5.0, 2.0],
        [5.0, 4.0],
        [10.0, 4.0],
        [25.0, 4.0],
        [25.0, 6.0],
        [25.0, 7.0],
        [25.0, 8.0],
        [29.0, 7.0],
    ];
    let mean = |medoids: [usize; 2]| {
        let near = |p: &[f64; 2]| medoids.map(|m| points[m - 1].distance(p));
        let sum: f64 = points.iter().map(|p| near(p)[0].min(near(p)[1])).sum();
        (sum * 10.0).round() / 100.0
    };
    assert_eq!((mean([1, 5]), mean([4, 8])), (9.37, 2.3));
    let found = pam_points(&points, &[1.0; 10], 2).unwrap();
    assert_eq!(found.medoids, [2, 7]);
    assert_eq!(found.assignment, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    assert_eq!(mean([3, 8]), (found.cost * 10.0).round() / 100.0);
    let best = exhaustive(&points, &[1.0; 10], 2);
    assert!((found.cost - best).abs() < 1e-9);
}

#[test]
fn input_without_clusters() {
    let at = |a: usize, b: usize| a.abs_diff(b) as f64;
    assert_eq!(pam(&[], 1, at), Err(ClusterError::NoPoints));
    let of = |clusters| pam(&[1.0; 3], clusters, at);
    for clusters in [0, 4] {
        let error = ClusterError::Clusters {
            clusters,
            points: 3,
        };
        assert_eq!(of(clusters), Err(error));
        assert_eq!(line(&[1.0; 3], &[1.0; 3], clusters), Err(error));
    }
    assert_eq!(of(3).unwrap().cost, 0.0);
    let error = pam(&[1.0, -1.0], 1, at).unwrap_err();
    assert_eq!(error.to_string(), "point 1 has the weight -1");
    let error = pam(&[1.0; 2], 1, |a, b| if a == b { 0.0 } else { f64::NAN });
    assert!(matches!(
        error,
        Err(ClusterError::Distance {
            one: 1,
            other: 0,
            ..
        })
    ));
    assert!(matches!(
        pam_points(&[1.0], &[], 1),
        Err(ClusterError::Weights {
            points: 1,
            weights: 0
        })
    ));
    assert!(line(&[f64::NAN], &[1.0], 1).is_err());
}

#[test]
fn a_weight_is_so_many_points() {
    let (points, weights) = ([0.0, 1.0, 10.0, 12.0, 40.0], [3.0, 1.0, 2.0, 5.0, 1.0]);
    let mut many: Vec<f64> = Vec::new();
    for (point, weight) in points.iter().zip(weights) {
        many.extend(vec![*point; weight as usize]);
    }
    for clusters in 1..=5 {
        let one = pam_points(&points, &weights, clusters).unwrap();
        let other = pam_points(&many, &vec![1.0; many.len()], clusters).unwrap();
        assert_eq!(one.cost, other.cost);
        let at = |medoids: &[usize], of: &[f64]| -> Vec<f64> {
            let mut values: Vec<f64> = medoids.iter().map(|m| of[*m]).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        assert_eq!(at(&one.medoids, &points), at(&other.medoids, &many));
    }
}

/// Least cost over each choice of medoids.
fn exhaustive(points: &[[f64; 2]], weights: &[f64], clusters: usize) -> f64 {
    let far = |a: &[f64; 2], b: &[f64; 2]| ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt();
    (0u32..1 << points.len())
        .filter(|set| set.count_ones() as usize == clusters)
        .map(|set| {
            let chosen: Vec<usize> = (0..points.len()).filter(|i| set >> i & 1 == 1).collect();
            let cost = |i: usize| {
                let near = chosen.iter().map(|c| far(&points[*c], &points[i]));
                weights[i] * near.fold(f64::INFINITY, f64::min)
            };
            (0..points.len()).map(cost).sum()
        })
        .fold(f64::INFINITY, f64::min)
}

/// Points with weights in a square of side 100.
fn cloud(points: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<[f64; 2]>, Vec<f64>)> {
    let point = prop::array::uniform2(0.0..100.0f64);
    let weight = (0..5u8).prop_map(f64::from);
    prop::collection::vec((point, weight), points).prop_map(|all| all.into_iter().unzip())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    /// Never better than the best choice; and where each exchange makes it worse, as defined.
    #[test]
    fn a_local_optimum((points, weights) in cloud(2..11), clusters in 1..5usize) {
        let clusters = clusters.min(points.len());
        let found = pam_points(&points, &weights, clusters).unwrap();
        let best = exhaustive(&points, &weights, clusters);
        prop_assert!(found.cost >= best - 1e-9 * (1.0 + best));
        prop_assert!(found.cost <= found.build_cost + 1e-9);
        let far = |a: usize, b: usize| {
            let (a, b) = (points[a], points[b]);
            ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt()
        };
        let cost = |medoids: &[usize]| -> f64 {
            let near = |i: usize| medoids.iter().map(|m| far(*m, i)).fold(f64::INFINITY, f64::min);
            (0..points.len()).map(|i| weights[i] * near(i)).sum()
        };
        prop_assert!((cost(&found.medoids) - found.cost).abs() < 1e-9 * (1.0 + best));
        for place in 0..clusters {
            for other in 0..points.len() {
                let mut medoids = found.medoids.clone();
                medoids[place] = other;
                prop_assert!(cost(&medoids) >= found.cost - 1e-9 * (1.0 + best));
            }
        }
    }

    /// Groups that lie far apart: the best choice.
    #[test]
    fn separated((points, weights) in cloud(6..13), clusters in 1..4usize) {
        let weights: Vec<f64> = weights.iter().map(|w| w + 1.0).collect();
        let moved: Vec<[f64; 2]> = points
            .iter()
            .enumerate()
            .map(|(i, p)| [p[0] + 1e5 * (i % clusters) as f64, p[1]])
            .collect();
        let found = pam_points(&moved, &weights, clusters).unwrap();
        let best = exhaustive(&moved, &weights, clusters);
        prop_assert!((found.cost - best).abs() < 1e-9 * (1.0 + best));
    }

    /// On a line the exact solution is the best choice, and PAM's is no better.
    #[test]
    fn on_a_line((points, weights) in cloud(2..11), clusters in 1..5usize, rounded: bool) {
        let clusters = clusters.min(points.len());
        let values: Vec<f64> = points
            .iter()
            .map(|p| if rounded { (p[0] / 10.0).round() } else { p[0] })
            .collect();
        let flat: Vec<[f64; 2]> = values.iter().map(|v| [*v, 0.0]).collect();
        let best = exhaustive(&flat, &weights, clusters);
        let exact = line(&values, &weights, clusters).unwrap();
        prop_assert!((exact.cost - best).abs() < 1e-9 * (1.0 + best));
        let found = pam_points(&values, &weights, clusters).unwrap();
        prop_assert!(found.cost >= best - 1e-9 * (1.0 + best));
    }
}
