//! CLARA against PAM of all points, and on more points than one wants to hold.

use cere_cluster::{ClusterError, Sampling, clara, line, pam_points};

/// Deterministic numbers between 0 and 1.
fn noise(index: u64) -> f64 {
    let z = (index ^ 0x9e37_79b9).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

/// Three groups in the plane, of 60, 30 and 10 percent.
fn groups(count: u64) -> impl Iterator<Item = ([f64; 2], f64)> {
    (0..count).map(|i| {
        let centre = match noise(3 * i) {
            n if n < 0.6 => [0.0, 0.0],
            n if n < 0.9 => [100.0, 0.0],
            _ => [0.0, 100.0],
        };
        let (x, y) = (noise(3 * i + 1), noise(3 * i + 2));
        ([centre[0] + 20.0 * x, centre[1] + 20.0 * y], 1.0)
    })
}

#[test]
fn near_pam_of_all_points() {
    let (points, weights): (Vec<_>, Vec<_>) = groups(600).unzip();
    for clusters in 1..=4 {
        let all = pam_points(&points, &weights, clusters).unwrap();
        let found = clara(|| groups(600), clusters, Sampling::default()).unwrap();
        assert!(
            found.cost >= all.cost * (1.0 - 1e-9),
            "better than a local optimum here"
        );
        assert!(found.cost < all.cost * 1.06, "{} {}", found.cost, all.cost);
        assert_eq!(found.weights.iter().sum::<f64>(), 600.0);
        let cost: f64 = points
            .iter()
            .map(|p| {
                let [x, y] = found.medoids[found.nearest(p)].1;
                ((p[0] - x).powi(2) + (p[1] - y).powi(2)).sqrt()
            })
            .sum();
        assert!((cost - found.cost).abs() < 1e-6 * cost);
        for (index, medoid) in &found.medoids {
            assert_eq!(points[*index as usize], *medoid);
        }
    }
    // The same clusters.
    let all = pam_points(&points, &weights, 3).unwrap();
    let found = clara(|| groups(600), 3, Sampling::default()).unwrap();
    let mut sizes: Vec<f64> = (0..3)
        .map(|c| all.assignment.iter().filter(|a| **a == c).count() as f64)
        .collect();
    let mut weights = found.weights.clone();
    sizes.sort_by(f64::total_cmp);
    weights.sort_by(f64::total_cmp);
    assert_eq!(weights, sizes);
}

#[test]
fn few_points_are_all_in_the_sample() {
    let (points, weights): (Vec<_>, Vec<_>) = groups(46).unzip();
    let all = pam_points(&points, &weights, 3).unwrap();
    let found = clara(|| groups(46), 3, Sampling::default()).unwrap();
    let medoids: Vec<usize> = found.medoids.iter().map(|m| m.0 as usize).collect();
    assert_eq!((medoids, found.cost), (all.medoids, all.cost));
}

#[test]
fn more_samples_cost_no_more_and_seeds_repeat() {
    let with = |samples, seed| {
        let sampling = Sampling {
            samples,
            seed,
            ..Sampling::default()
        };
        clara(|| groups(5000), 5, sampling).unwrap()
    };
    for seed in 0..5 {
        assert!(with(20, seed).cost <= with(1, seed).cost);
        assert_eq!(with(5, seed), with(5, seed));
    }
    assert_ne!(with(1, 1).medoids, with(1, 2).medoids);
}

/// A million points, generated as they are asked for; the exact solution is that of a tenth of them, evenly taken.
#[test]
fn a_million_points() {
    let value = |i: u64| {
        let base = [1000.0, 5000.0, 20000.0][(i % 7 % 3) as usize];
        base * (1.0 + 0.1 * noise(i))
    };
    let points = || (0..1_000_000).map(|i| (value(i), 1.0));
    let found = clara(points, 3, Sampling::default()).unwrap();
    assert_eq!(found.points, 1_000_000);
    assert_eq!(found.weights.iter().sum::<f64>(), 1e6);
    let mut few: Vec<f64> = (0..100_000).map(|i| value(10 * i + i % 10)).collect();
    few.sort_by(f64::total_cmp);
    let exact = line(&few, &vec![1.0; few.len()], 3).unwrap();
    let ratio = found.cost / (10.0 * exact.cost);
    assert!((0.99..1.1).contains(&ratio), "{ratio}");
}

/// A point that stands for many is drawn as they would be.
#[test]
fn weights() {
    // 1000 invocations of about 1 and one that stands for a million of about 50.
    let points = || {
        let light = (0..1000).map(|i| (1.0 + 0.1 * noise(i), 1.0));
        light.chain([(50.0, 1e6)])
    };
    let found = clara(points, 1, Sampling::default()).unwrap();
    assert_eq!(found.medoids, [(1000, 50.0)]);
    let found = clara(points, 2, Sampling::default()).unwrap();
    assert_eq!(found.weights, [1000.0, 1e6]);
}

#[test]
fn input_without_clusters() {
    let of = |points: &[(f64, f64)], clusters| {
        clara(|| points.iter().copied(), clusters, Sampling::default()).unwrap_err()
    };
    assert_eq!(of(&[], 1), ClusterError::NoPoints);
    let error = ClusterError::Clusters {
        clusters: 2,
        points: 1,
    };
    assert_eq!(of(&[(1.0, 1.0)], 2), error);
    assert_eq!(of(&[(1.0, 0.0)], 1), ClusterError::NoWeight);
    let many = |last: (f64, f64)| [vec![(1.0, 1.0); 99], vec![last]].concat();
    let weight = of(&many((1.0, -1.0)), 1);
    assert!(matches!(weight, ClusterError::Weight { index: 99, .. }));
    let distance = of(&many((f64::NAN, 1.0)), 1);
    assert!(
        matches!(distance, ClusterError::Distance { .. }),
        "{distance:?}"
    );
    // More clusters than a sample finds points.
    let sampling = Sampling {
        samples: 2,
        size: 0,
        size_per_cluster: 1,
        seed: 1,
    };
    let heavy = || (0..50).map(|i| (f64::from(i), if i == 0 { 1e9 } else { 1.0 }));
    assert_eq!(clara(heavy, 5, sampling).unwrap().medoids.len(), 5);
}
