//! What a subset is: programs, their codelets, the points that are clustered, the clusters. `subset.json` of an archive.

use crate::subset::machine::Machine;
use anyhow::Result;
use cere_catalogue::{bail, ensure};
use cere_cluster::Dendrogram;
use cere_format::replay::Warmup;
use cere_format::untrusted::is_plain;
use serde::{Deserialize, Serialize};

/// Version of the subset and of measurements.
pub const SUBSET_VERSION: u32 = 1;

/// Few codelets that stand for many programs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Subset {
    /// [`SUBSET_VERSION`].
    pub version: u32,
    /// Hash over machine, programs, codelets, points and clusters: another subset has another.
    pub id: String,
    /// The machine of the reference times.
    pub machine: Machine,
    /// How it was made.
    pub choice: Choice,
    /// The programs.
    pub programs: Vec<Program>,
    /// Their codelets.
    pub codelets: Vec<Codelet>,
    /// What was clustered.
    pub points: Vec<Point>,
    /// The merges of the points.
    pub dendrogram: Dendrogram,
    /// Average within-cluster variance for each number of clusters, from 1.
    pub variance: Vec<f64>,
    /// Number of clusters at the elbow of `variance`.
    pub elbow: usize,
    /// The clusters, by falling time.
    pub clusters: Vec<Cluster>,
}

/// How a subset was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Whether the points are codelets (time and space in one) instead of regions.
    pub unified: bool,
    /// The metrics that count, by name.
    pub metrics: Vec<String>,
    /// Metrics without a use: why, by name.
    pub dropped: Vec<(String, String)>,
    /// Whether large values were compressed by a logarithm before the z-scores.
    pub logarithm: bool,
    /// Share of the variance that the principal components keep which took the metrics' place, if they did.
    #[serde(default)]
    pub components: Option<f64>,
    /// State of the caches before each repetition, of the reference times and so of all others.
    #[serde(default)]
    pub warmup: Option<Warmup>,
    /// The simulated caches.
    pub geometry: String,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Name, unique among the programs.
    pub name: String,
    /// The profiled command without directories, for people.
    pub command: String,
    /// Seconds of its run on the reference machine.
    pub seconds: f64,
}

/// A codelet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Codelet {
    /// Its name.
    pub name: String,
    /// Its program, as index.
    pub program: usize,
    /// SHA-256 of the package, in hexadecimal.
    pub sha256: String,
    /// Bytes of the package.
    pub bytes: u64,
    /// Seconds of one invocation in each round on the reference machine.
    pub reference: Vec<f64>,
}

/// What is clustered: a region with the codelets of its classes or, in a unified subset, one codelet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The region's or the codelet's name.
    pub name: String,
    /// Its program, as index.
    pub program: usize,
    /// Seconds of the program's run that it stands for.
    pub seconds: f64,
    /// Its codelets, as indices, and their shares of `seconds`, which add up to 1.
    pub members: Vec<(usize, f64)>,
}

/// Seconds of one invocation of each point's codelets, together, on the reference machine.
#[must_use]
pub fn replay_seconds(points: &[Point], codelets: &[Codelet]) -> Vec<f64> {
    let codelet = |m: &(usize, f64)| crate::subset::rounds::fast(&codelets[m.0].reference);
    let point = |p: &Point| p.members.iter().map(codelet).sum();
    points.iter().map(point).collect()
}

/// Points that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// The point nearest to the centroid.
    pub representative: usize,
    /// The representative and all others, by rising distance from it.
    pub members: Vec<usize>,
    /// Members that are measured as a check, the farthest first.
    pub checks: Vec<usize>,
}

/// How metrics become coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Whether large values are compressed by a logarithm before the z-scores.
    pub logarithm: bool,
    /// Share of the variance that the principal components keep which take the metrics' place; none: the metrics themselves.
    pub components: Option<f64>,
}

impl Choice {
    /// How metrics became coordinates.
    #[must_use]
    pub fn scaling(&self) -> Scaling {
        Scaling {
            logarithm: self.logarithm,
            components: self.components,
        }
    }
}

impl Subset {
    /// The codelets that are measured, as indices, rising: those of representatives and checks.
    #[must_use]
    pub fn measured(&self) -> Vec<usize> {
        let points = self
            .clusters
            .iter()
            .flat_map(|c| std::iter::once(&c.representative).chain(&c.checks));
        let mut all: Vec<usize> = points
            .flat_map(|p| self.points[*p].members.iter().map(|m| m.0))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// `program/point`.
    #[must_use]
    pub fn point_name(&self, point: usize) -> String {
        let of = &self.points[point];
        format!("{}/{}", self.programs[of.program].name, of.name)
    }

    /// The cluster of each point.
    #[must_use]
    pub fn labels(&self) -> Vec<usize> {
        let mut labels = vec![0; self.points.len()];
        for (number, cluster) in self.clusters.iter().enumerate() {
            for point in &cluster.members {
                labels[*point] = number;
            }
        }
        labels
    }

    /// Seconds of one invocation of a codelet on the reference machine.
    #[must_use]
    pub fn reference_seconds(&self, codelet: usize) -> f64 {
        crate::subset::rounds::fast(&self.codelets[codelet].reference)
    }

    /// Seconds of all programs over those of one invocation of each measured codelet, on the reference machine.
    #[must_use]
    pub fn reduction(&self) -> f64 {
        let programs: f64 = self.programs.iter().map(|p| p.seconds).sum();
        let each = self.measured().into_iter();
        let replays: f64 = each.map(|c| self.reference_seconds(c)).sum();
        programs / replays
    }

    /// Sets the id.
    pub(crate) fn identify(&mut self) -> Result<()> {
        let content = (
            &self.machine,
            &self.programs,
            &self.codelets,
            &self.points,
            &self.clusters,
        );
        self.id = cere_store::state::hash(&serde_json::to_string(&content)?);
        Ok(())
    }

    /// Fails if the indices do not fit, a time is none, or the id is that of other content: it may come from anywhere.
    pub fn check(&self) -> Result<()> {
        if self.version != SUBSET_VERSION {
            let advice = match self.version > SUBSET_VERSION {
                true => "install a newer cere",
                false => "make it again",
            };
            bail!(
                E4008,
                "the subset has version {}, this cere reads {SUBSET_VERSION}: {advice}",
                self.version
            );
        }
        let mut same = self.clone();
        same.identify()?;
        ensure!(
            same.id == self.id,
            E6307,
            "the subset was changed after it was made: its id is {}, its content says {}",
            self.id,
            same.id
        );
        let (programs, codelets, points) =
            (self.programs.len(), self.codelets.len(), self.points.len());
        let time = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        let named = |name: &str| !name.is_empty() && name.chars().all(is_plain);
        ensure!(
            points > 0 && self.dendrogram.points == points && self.dendrogram.is_whole(),
            E6307,
            "the subset has no points, or no tree of them"
        );
        for program in &self.programs {
            ensure!(
                time(program.seconds) && named(&program.name),
                E6307,
                "the program {} of the subset takes {} s",
                program.name,
                program.seconds
            );
        }
        for codelet in &self.codelets {
            let hash =
                codelet.sha256.len() == 64 && codelet.sha256.bytes().all(|b| b.is_ascii_hexdigit());
            ensure!(
                hash && codelet.program < programs
                    && !codelet.reference.is_empty()
                    && codelet.reference.iter().all(|s| time(*s)),
                E6307,
                "the codelet {} of the subset has no program, checksum or reference time",
                codelet.name
            );
        }
        for point in &self.points {
            let whole: f64 = point.members.iter().map(|m| m.1).sum();
            ensure!(
                point.program < programs
                    && time(point.seconds)
                    && (whole - 1.0).abs() < 1e-6
                    && point.members.iter().all(|m| m.0 < codelets && m.1 >= 0.0),
                E6307,
                "the point {} of the subset has no program, time or codelets",
                point.name
            );
        }
        let mut seen = vec![0; points];
        for cluster in &self.clusters {
            let own = |p: &usize| cluster.members.contains(p);
            ensure!(
                own(&cluster.representative) && cluster.checks.iter().all(own),
                E6307,
                "a cluster of the subset is represented by a point that is not in it"
            );
            for point in &cluster.members {
                ensure!(
                    *point < points,
                    E6307,
                    "a cluster of the subset has point {point} of {points}"
                );
                seen[*point] += 1;
            }
        }
        ensure!(
            seen.iter().all(|n| *n == 1),
            E6307,
            "the clusters of the subset do not hold each point once"
        );
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
