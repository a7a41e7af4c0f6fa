//! CLARA: PAM on samples (Kaufman and Rousseeuw, Finding Groups in Data, 1990, chapter 3).

use crate::pam::pam_points;
use crate::point::{ClusterError, Point, valid};

/// How CLARA samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Samples drawn; 0 counts as 1.
    pub samples: usize,
    /// Points of a sample, and those that are added a cluster.
    pub size: usize,
    /// See `size`.
    pub size_per_cluster: usize,
    /// Where the random numbers start: the same seed draws the same samples.
    pub seed: u64,
}

impl Default for Sampling {
    /// As in the book: five samples of 40 points and two a cluster.
    fn default() -> Self {
        Self {
            samples: 5,
            size: 40,
            size_per_cluster: 2,
            seed: 1,
        }
    }
}

/// A clustering by CLARA.
#[derive(Debug, Clone, PartialEq)]
pub struct Medoids<P> {
    /// The medoid of each cluster with its index in the source, by rising index.
    pub medoids: Vec<(u64, P)>,
    /// Weight of all points that have this medoid for their nearest.
    pub weights: Vec<f64>,
    /// Weighted sum of all points' dissimilarities to their nearest medoid.
    pub cost: f64,
    /// Points of the source.
    pub points: u64,
}

impl<P: Point> Medoids<P> {
    /// The cluster of `point`: the nearest medoid's, at equal distance the first.
    pub fn nearest(&self, point: &P) -> usize {
        nearest(&self.medoids, point).0
    }
}

/// `clusters` medoids of the weighted points that each call of `source` gives anew, always the same ones in the same
/// order. Samples are drawn by weight and hold the best medoids so far; those medoids win that cost least over all
/// points. No more points than a sample has: PAM of all of them. Memory is that of the samples, whatever the source;
/// it is gone through twice, and once for each sample.
pub fn clara<P, I>(
    source: impl Fn() -> I,
    clusters: usize,
    sampling: Sampling,
) -> Result<Medoids<P>, ClusterError>
where
    P: Point + Clone,
    I: Iterator<Item = (P, f64)>,
{
    let size = sampling.size + sampling.size_per_cluster * clusters;
    let (mut points, mut total, mut start) = (0, 0.0, Vec::new());
    for (point, weight) in source() {
        if !valid(weight) {
            let index = points;
            return Err(ClusterError::Weight { index, weight });
        }
        if points <= size.max(clusters) as u64 {
            start.push((points, point, weight));
        }
        points += 1;
        total += weight;
    }
    if points == 0 {
        return Err(ClusterError::NoPoints);
    }
    if clusters == 0 || clusters as u64 > points {
        return Err(ClusterError::Clusters {
            clusters,
            points: points as usize,
        });
    }
    if total == 0.0 {
        return Err(ClusterError::NoWeight);
    }
    if points <= size as u64 {
        return over_all(&source, partition(&start, clusters)?);
    }
    let mut best: Option<Medoids<P>> = None;
    for mut sample in draw(&source, total, size, clusters, sampling) {
        if let Some(best) = &best {
            for (index, point) in &best.medoids {
                add(&mut sample, *index, point, 1.0);
            }
        }
        for (index, point, _) in &start {
            if sample.len() < clusters {
                add(&mut sample, *index, point, 0.0);
            }
        }
        let found = over_all(&source, partition(&sample, clusters)?)?;
        if best.as_ref().is_none_or(|best| found.cost < best.cost) {
            best = Some(found);
        }
    }
    best.ok_or(ClusterError::NoPoints)
}

/// Index, point and weight.
type Sample<P> = Vec<(u64, P, f64)>;

/// All samples, in one go through the source: a point falls into one for every random number below the total weight
/// that it reaches over, and weighs there as many.
fn draw<P: Point + Clone, I: Iterator<Item = (P, f64)>>(
    source: &impl Fn() -> I,
    total: f64,
    size: usize,
    clusters: usize,
    sampling: Sampling,
) -> Vec<Sample<P>> {
    let mut random = Random(sampling.seed);
    let mut marks = Vec::new();
    for sample in 0..sampling.samples.max(1) {
        let known = if sample == 0 { 0 } else { clusters };
        for _ in 0..size.saturating_sub(known) {
            marks.push((random.below_one() * total, sample));
        }
    }
    marks.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut samples = vec![Vec::new(); sampling.samples.max(1)];
    let mut sum = 0.0;
    for (index, (point, weight)) in (0..).zip(source()) {
        sum += weight;
        while let Some((_, sample)) = marks.pop_if(|mark| mark.0 < sum) {
            add(&mut samples[sample], index, &point, 1.0);
        }
        if marks.is_empty() {
            break;
        }
    }
    samples
}

fn add<P: Clone>(sample: &mut Sample<P>, index: u64, point: &P, weight: f64) {
    match sample.iter_mut().find(|s| s.0 == index) {
        Some(known) => known.2 += weight,
        None => sample.push((index, point.clone(), weight)),
    }
}

/// PAM's medoids of a sample, by rising index.
fn partition<P: Point + Clone>(
    sample: &Sample<P>,
    clusters: usize,
) -> Result<Vec<(u64, P)>, ClusterError> {
    let points: Vec<P> = sample.iter().map(|s| s.1.clone()).collect();
    let weights: Vec<f64> = sample.iter().map(|s| s.2).collect();
    let mut medoids: Vec<(u64, P)> = pam_points(&points, &weights, clusters)?
        .medoids
        .into_iter()
        .map(|m| (sample[m].0, sample[m].1.clone()))
        .collect();
    medoids.sort_by_key(|m| m.0);
    Ok(medoids)
}

/// Assigns all points.
fn over_all<P: Point, I: Iterator<Item = (P, f64)>>(
    source: &impl Fn() -> I,
    medoids: Vec<(u64, P)>,
) -> Result<Medoids<P>, ClusterError> {
    let mut found = Medoids {
        weights: vec![0.0; medoids.len()],
        medoids,
        cost: 0.0,
        points: 0,
    };
    for (point, weight) in source() {
        let (cluster, distance) = nearest(&found.medoids, &point);
        if !valid(distance) {
            return Err(ClusterError::Distance {
                one: found.points,
                other: found.medoids[cluster].0,
                distance,
            });
        }
        found.weights[cluster] += weight;
        found.cost += weight * distance;
        found.points += 1;
    }
    Ok(found)
}

fn nearest<P: Point>(medoids: &[(u64, P)], point: &P) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (cluster, (_, medoid)) in medoids.iter().enumerate() {
        let distance = medoid.distance(point);
        if distance < best.1 {
            best = (cluster, distance);
        }
    }
    best
}

/// splitmix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    /// From 0 to below 1.
    fn below_one(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }
}
