//! How wrong predictions from a few codelets are, on machines where all were measured.

use crate::choose::{self, Space};
use crate::document::{Cluster, Point};
use anyhow::Result;
use cere_cluster::random_partition;
use cere_stats::Spread;
use serde::{Deserialize, Serialize};

/// Partitions at random for each number of clusters (CERE thesis, 4.3).
pub const RANDOM: usize = 1000;

/// Ratios of all points on one machine; none where a codelet could not be measured there.
pub type Ratios = Vec<Option<f64>>;

/// Relative errors of a set of predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Median.
    pub median: f64,
    /// Mean.
    pub mean: f64,
    /// Nine of ten are below.
    pub p90: f64,
    /// Largest.
    pub most: f64,
    /// Number of predictions.
    pub of: usize,
}

impl Errors {
    /// Of absolute relative errors; none of no predictions.
    #[must_use]
    pub fn of(errors: &[f64]) -> Option<Self> {
        let spread = Spread::of(errors).ok()?;
        let mut sorted = errors.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = ((0.9 * sorted.len() as f64).ceil() as usize).max(1) - 1;
        Some(Self {
            median: spread.median,
            mean: errors.iter().sum::<f64>() / errors.len() as f64,
            p90: sorted[at.min(sorted.len() - 1)],
            most: spread.max,
            of: errors.len(),
        })
    }
}

/// Relative error of each point that its cluster's representative predicts. A representative predicts itself without error, as in
/// the thesis; points and clusters without times are left out.
#[must_use]
pub fn point_errors(clusters: &[Cluster], ratios: &Ratios) -> Vec<f64> {
    let mut errors = Vec::new();
    for cluster in clusters {
        let Some(representative) = ratios[cluster.representative] else {
            continue;
        };
        let own = cluster.members.iter().filter_map(|p| ratios[*p]);
        errors.extend(own.map(|ratio| (representative / ratio - 1.0).abs()));
    }
    errors
}

/// Relative error of each program's covered time: the sum of its points by their representatives over that by themselves.
#[must_use]
pub fn program_errors(
    clusters: &[Cluster],
    points: &[Point],
    programs: usize,
    ratios: &Ratios,
) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); programs];
    for cluster in clusters {
        let Some(representative) = ratios[cluster.representative] else {
            continue;
        };
        for point in &cluster.members {
            if let Some(ratio) = ratios[*point] {
                let of = &points[*point];
                let (predicted, measured) = &mut sums[of.program];
                *predicted += of.seconds * representative;
                *measured += of.seconds * ratio;
            }
        }
    }
    let some = sums.into_iter().filter(|(_, measured)| *measured > 0.0);
    some.map(|(predicted, measured)| (predicted / measured - 1.0).abs())
        .collect()
}

/// Errors for one number of clusters, over all machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ByK {
    /// Number of clusters.
    pub k: usize,
    /// Of points.
    pub points: Errors,
    /// Of programs.
    pub programs: Errors,
    /// Median error of points with random partitions: the best of them, a tenth are below, the median one, nine tenths are below.
    pub random: [f64; 4],
    /// Share of random partitions whose median error is at most that of the clusters.
    pub random_as_good: f64,
    /// Seconds of all programs over those of one invocation of each representative's codelets.
    pub reduction: f64,
}

/// What errors are computed from.
pub struct Known<'a> {
    /// The points.
    pub points: &'a [Point],
    /// Number of programs.
    pub programs: usize,
    /// Seconds of all programs.
    pub program_seconds: f64,
    /// Seconds of one run of each point's codelets.
    pub replay_seconds: &'a [f64],
    /// Ratios, a machine each.
    pub machines: &'a [Ratios],
}

impl Known<'_> {
    /// Errors of `clusters` over all machines, of points and of programs.
    fn errors(&self, clusters: &[Cluster]) -> (Vec<f64>, Vec<f64>) {
        let mut points = Vec::new();
        let mut programs = Vec::new();
        for ratios in self.machines {
            points.extend(point_errors(clusters, ratios));
            programs.extend(program_errors(clusters, self.points, self.programs, ratios));
        }
        (points, programs)
    }

    /// Errors for `k` clusters of `space`, and of [`RANDOM`] partitions of the same points whose representatives are chosen likewise;
    /// none if no machine has times.
    ///
    /// # Errors
    /// There are fewer points than clusters.
    pub fn by_k(&self, space: &Space, k: usize, seed: u64) -> Result<Option<ByK>> {
        let clusters = space.clusters(k, 0, self.points)?;
        let (points, programs) = self.errors(&clusters);
        let (Some(points), Some(programs)) = (Errors::of(&points), Errors::of(&programs)) else {
            return Ok(None);
        };
        let values = &space.scores.values;
        let mut medians = Vec::with_capacity(RANDOM);
        for number in 0..RANDOM as u64 {
            let labels = random_partition(self.points.len(), k, seed.wrapping_add(number))?;
            let random = choose::clusters(values, &labels, 0, self.points)?;
            medians.extend(Errors::of(&self.errors(&random).0).map(|e| e.median));
        }
        medians.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (share * medians.len() as f64) as usize;
            medians.get(place.min(medians.len().saturating_sub(1)))
        };
        let as_good = medians.iter().filter(|m| **m <= points.median).count();
        let replays: f64 = clusters
            .iter()
            .map(|c| self.replay_seconds[c.representative])
            .sum();
        Ok(Some(ByK {
            k,
            points,
            programs,
            random: [0.0, 0.1, 0.5, 0.9].map(|share| at(share).copied().unwrap_or(f64::NAN)),
            random_as_good: as_good as f64 / medians.len().max(1) as f64,
            reduction: self.program_seconds / replays,
        }))
    }

    /// Errors of programs that the clusters were made without: each of their points goes to the cluster with the nearest centroid, and
    /// is predicted by its representative. Of points and of programs, over all machines; none with a single program.
    ///
    /// # Errors
    /// No metric tells the points of the other programs apart.
    pub fn without_program(
        &self,
        rows: &[Vec<Option<f64>>],
        logarithm: bool,
        k: usize,
    ) -> Result<Option<(Errors, Errors)>> {
        let (mut points, mut programs) = (Vec::new(), Vec::new());
        for program in 0..self.programs {
            let kept: Vec<usize> = (0..self.points.len())
                .filter(|p| self.points[*p].program != program)
                .collect();
            let own: Vec<usize> = (0..self.points.len())
                .filter(|p| self.points[*p].program == program)
                .collect();
            if kept.is_empty() || own.is_empty() {
                continue;
            }
            let others: Vec<_> = kept.iter().map(|p| rows[*p].clone()).collect();
            let space = choose::space(&others, logarithm)?;
            let labels = space.dendrogram.cut(k.min(kept.len()))?;
            let members = cere_cluster::by_distance(&space.scores.values, &labels)?;
            let centroids = cere_cluster::centroids(&space.scores.values, &labels)?;
            let mut clusters: Vec<Cluster> = members
                .iter()
                .map(|members| Cluster {
                    representative: kept[members[0]],
                    members: Vec::new(),
                    checks: Vec::new(),
                })
                .collect();
            for point in &own {
                let place = space.scores.project(&rows[*point])?;
                let distance = |c: &Vec<f64>| -> f64 {
                    c.iter().zip(&place).map(|(a, b)| (a - b).powi(2)).sum()
                };
                let nearest = (0..centroids.len())
                    .min_by(|a, b| distance(&centroids[*a]).total_cmp(&distance(&centroids[*b])));
                if let Some(nearest) = nearest {
                    clusters[nearest].members.push(*point);
                }
            }
            let (own_points, own_programs) = self.errors(&clusters);
            points.extend(own_points);
            programs.extend(own_programs);
        }
        Ok(Errors::of(&points).zip(Errors::of(&programs)))
    }
}
