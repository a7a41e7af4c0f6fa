//! How wrong predictions from a few codelets are, on machines where all were measured.

use crate::subset::choose::{self, Space};
use crate::subset::document::{Cluster, Point, Scaling};
use anyhow::Result;
use cere_cluster::{by_distance, centroids, kmeans, random_partition};
use cere_system::events::Events;
use cere_timing::stats::Spread;
use serde::Serialize;
use std::collections::BTreeSet;

/// Partitions at random for each number of clusters (CERE thesis, 4.3).
pub const RANDOM: usize = 1000;

/// Starts of k-means.
const STARTS: usize = 20;

/// Ratios of all points on one machine; none where a codelet could not be measured there.
pub type Ratios = Vec<Option<f64>>;

/// Relative errors of a set of predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

/// Relative error of each point that its cluster's representative predicts. Representatives themselves, points and clusters without
/// times are left out.
#[must_use]
pub fn point_errors(clusters: &[Cluster], ratios: &Ratios) -> Vec<f64> {
    let mut errors = Vec::new();
    for cluster in clusters {
        let Some(representative) = ratios[cluster.representative] else {
            continue;
        };
        let others = cluster.members.iter();
        let others = others.filter(|p| **p != cluster.representative);
        let others = others.filter_map(|p| ratios[*p]);
        errors.extend(others.map(|ratio| (representative / ratio - 1.0).abs()));
    }
    errors
}

/// The errors as the thesis counts them: representatives are among the points, with no error.
#[must_use]
pub fn with_representatives(clusters: &[Cluster], ratios: &Ratios) -> Vec<f64> {
    let own = clusters
        .iter()
        .filter(|c| ratios[c.representative].is_some());
    let mut errors = vec![0.0; own.count()];
    errors.extend(point_errors(clusters, ratios));
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ByK {
    /// Number of clusters.
    pub k: usize,
    /// Of points that are no representatives.
    pub points: Errors,
    /// Of points as the thesis counts them, representatives among them.
    pub thesis: Errors,
    /// Of programs.
    pub programs: Errors,
    /// Median of [`Self::points`] with random partitions: the best of them, a tenth are below, the median one, nine tenths are below.
    pub random: [f64; 4],
    /// The same with the clusters of k-means.
    pub means: Option<f64>,
    /// Share of random partitions whose median is at most that of the clusters.
    pub random_as_good: f64,
    /// Seconds of all programs over those of one invocation of each representative's codelets; checks are not among them.
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
        let thesis: Vec<f64> = self
            .machines
            .iter()
            .flat_map(|ratios| with_representatives(&clusters, ratios))
            .collect();
        let (Some(points), Some(thesis), Some(programs)) = (
            Errors::of(&points),
            Errors::of(&thesis),
            Errors::of(&programs),
        ) else {
            return Ok(None);
        };
        let values = &space.values;
        let mut medians = Vec::with_capacity(RANDOM);
        for number in 0..RANDOM as u64 {
            let labels = random_partition(self.points.len(), k, seed.wrapping_add(number))?;
            let random = choose::clusters(values, &labels, 0, self.points)?;
            medians.extend(Errors::of(&self.errors(&random).0).map(|e| e.median));
        }
        let labels = kmeans(values, k, STARTS, seed)?;
        let means = choose::clusters(values, &labels, 0, self.points)?;
        let means = Errors::of(&self.errors(&means).0);
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
            random: [0.0, 0.1, 0.5, 0.9].map(|share| at(share).copied().unwrap_or(0.0)),
            random_as_good: as_good as f64 / medians.len().max(1) as f64,
            means: means.map(|e| e.median),
            thesis,
            reduction: self.program_seconds / replays,
        }))
    }

    /// Errors of programs that the clusters were made without: each of their points goes to the cluster with the nearest centroid, and
    /// is predicted by its representative. Of points and of programs, over all machines; none with a single program.
    ///
    /// # Errors
    /// The rows are not those of the points.
    pub fn without_program(
        &self,
        rows: &[Vec<Option<f64>>],
        scaling: Scaling,
        k: usize,
        events: &Events,
    ) -> Result<Option<(Errors, Errors)>> {
        let (mut points, mut programs) = (Vec::new(), Vec::new());
        for program in 0..self.programs {
            let is_own = |p: &usize| self.points[*p].program == program;
            let own: Vec<usize> = (0..self.points.len()).filter(is_own).collect();
            // Another program with one of its codelets is the same program.
            let codelets: BTreeSet<usize> = own
                .iter()
                .flat_map(|p| self.points[*p].members.iter().map(|m| m.0))
                .collect();
            let twins: BTreeSet<usize> = self
                .points
                .iter()
                .filter(|p| p.members.iter().any(|m| codelets.contains(&m.0)))
                .map(|p| p.program)
                .collect();
            let kept: Vec<usize> = (0..self.points.len())
                .filter(|p| !is_own(p) && !twins.contains(&self.points[*p].program))
                .collect();
            if kept.is_empty() || own.is_empty() {
                continue;
            }
            let others: Vec<_> = kept.iter().map(|p| rows[*p].clone()).collect();
            let space = match choose::space(&others, scaling) {
                Ok(space) => space,
                Err(error) => {
                    events.note(format!(
                        "a program is not left out for the expected error: {error}"
                    ));
                    continue;
                }
            };
            let labels = space.dendrogram.cut(k.min(kept.len()))?;
            let members = by_distance(&space.values, &labels)?;
            let centroids = centroids(&space.values, &labels)?;
            let mut clusters: Vec<Cluster> = members
                .iter()
                .map(|members| Cluster {
                    representative: kept[members[0]],
                    members: Vec::new(),
                    checks: Vec::new(),
                })
                .collect();
            for point in &own {
                let place = space.project(&rows[*point])?;
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
