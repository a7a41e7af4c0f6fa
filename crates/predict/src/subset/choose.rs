//! From points and their metrics to clusters and representatives (CERE thesis, 4.3 and 6.4).

use crate::subset::document::{Cluster, Point, Scaling};
use crate::subset::vectors::Vector;
use anyhow::Result;
use cere_catalogue::bail;
use cere_cluster::{
    Components, Dendrogram, Scores, Transform, components, elbow, farthest, medoids, variances,
    ward, z_scores,
};
use cere_count::metrics::METRICS;

/// The thirteen metrics of the thesis (table 4.1), in this project's names.
pub const THESIS: [&str; 13] = [
    "mflops",
    "l2_bandwidth",
    "l3_miss_rate",
    "memory_bandwidth",
    "model_store_bytes",
    "model_ipc",
    "model_port_1",
    "model_dependency_stall",
    "sd_instructions",
    "add_mul_ratio",
    "vector_ratio_mul",
    "vector_ratio_other_float",
    "vector_ratio_other_integer",
];

/// The metrics that `words` name: `all`, `counts` (those that need no clock), `thesis`, groups, or metrics.
///
/// # Errors
/// A word is none of these.
pub fn metrics(words: &[String]) -> Result<Vec<&'static str>> {
    let mut wanted = vec![false; METRICS.len()];
    for word in words {
        let chosen = |m: &cere_count::metrics::Metric| match word.as_str() {
            "all" => true,
            "counts" => m.group != "rate",
            "thesis" => THESIS.contains(&m.name),
            word => m.name == word || m.group == word,
        };
        let mut known = false;
        for (wanted, metric) in wanted.iter_mut().zip(METRICS.iter()) {
            known |= chosen(metric);
            *wanted |= chosen(metric);
        }
        if !known {
            bail!(
                E6302,
                "{word} is no metric and no group of them: `cere metrics --list` shows them; all, counts and thesis are sets"
            );
        }
    }
    let chosen = wanted.iter().zip(METRICS.iter()).filter(|(w, _)| **w);
    Ok(chosen.map(|(_, m)| m.name).collect())
}

/// Points in the space of their metrics, and how they merge.
pub struct Space {
    /// The normalised metrics.
    pub scores: Scores,
    /// The principal components that take their place, and their number.
    components: Option<(Components, usize)>,
    /// Coordinates of the points.
    pub values: Vec<Vec<f64>>,
    /// The merges.
    pub dendrogram: Dendrogram,
    /// Average within-cluster variance by number of clusters, from 1.
    pub variance: Vec<f64>,
    /// Number of clusters at its elbow.
    pub elbow: usize,
}

/// The rows of `names` in `vectors`.
#[must_use]
pub fn rows(vectors: &[Vector], names: &[&str]) -> Vec<Vec<Option<f64>>> {
    let row = |vector: &Vector| {
        names
            .iter()
            .map(|name| vector.get(*name).copied())
            .collect()
    };
    vectors.iter().map(row).collect()
}

/// Clusters `rows`, a point each.
///
/// # Errors
/// There are no points, or no metric tells them apart.
pub fn space(rows: &[Vec<Option<f64>>], scaling: Scaling) -> Result<Space> {
    let transform = match scaling.logarithm {
        true => Transform::Log,
        false => Transform::None,
    };
    let scores = z_scores(rows, transform)?;
    if scores.columns.is_empty() && rows.len() > 1 {
        bail!(
            E6303,
            "none of the chosen metrics tells the {} points apart: each is constant or has no value",
            rows.len()
        );
    }
    let components = match scaling.components {
        None => None,
        Some(share) => {
            let all = components(&scores.values)?;
            let kept = all.components_for(share);
            Some((all, kept))
        }
    };
    let values = scores.values.iter();
    let values = values.map(|v| reduced(components.as_ref(), v.clone()));
    let values: Vec<Vec<f64>> = values.collect::<Result<_>>()?;
    let dendrogram = ward(&values)?;
    let variance = variances(&values, &dendrogram)?;
    Ok(Space {
        components,
        values,
        elbow: elbow(&variance),
        variance,
        dendrogram,
        scores,
    })
}

/// The coordinates of normalised metrics.
fn reduced(components: Option<&(Components, usize)>, scores: Vec<f64>) -> Result<Vec<f64>> {
    Ok(match components {
        None => scores,
        Some((all, kept)) => {
            let mut place = all.project(&scores)?;
            place.truncate(*kept);
            place
        }
    })
}

impl Space {
    /// Coordinates of a point that was not among those that make the space.
    ///
    /// # Errors
    /// It has other metrics.
    pub fn project(&self, row: &[Option<f64>]) -> Result<Vec<f64>> {
        reduced(self.components.as_ref(), self.scores.project(row)?)
    }

    /// `k` clusters with at most `checks` checks each.
    ///
    /// # Errors
    /// There are fewer points than clusters.
    pub fn clusters(&self, k: usize, checks: usize, points: &[Point]) -> Result<Vec<Cluster>> {
        if k > points.len() {
            bail!(
                E6301,
                "{} points cannot make {k} clusters: take --clusters {} or fewer",
                points.len(),
                points.len()
            );
        }
        let labels = self.dendrogram.cut(k)?;
        clusters(&self.values, &labels, checks, points)
    }
}

/// The clusters that `labels` say, by falling time.
///
/// # Errors
/// The labels are no partition of the points.
pub fn clusters(
    values: &[Vec<f64>],
    labels: &[usize],
    checks: usize,
    points: &[Point],
) -> Result<Vec<Cluster>> {
    let medoids = medoids(values, labels)?;
    let others = farthest(values, labels, &medoids)?;
    let each = medoids.into_iter().zip(others);
    let mut all: Vec<Cluster> = each
        .map(|(representative, others)| {
            // The same codelets would agree whatever the cluster.
            let own = |p: &&usize| points[**p].members != points[representative].members;
            let checks = others.iter().filter(own).take(checks).copied().collect();
            let nearest = others.into_iter().rev();
            Cluster {
                representative,
                checks,
                members: std::iter::once(representative).chain(nearest).collect(),
            }
        })
        .collect();
    let time = |c: &Cluster| c.members.iter().map(|p| points[*p].seconds).sum::<f64>();
    all.sort_by(|a, b| time(b).total_cmp(&time(a)));
    Ok(all)
}
