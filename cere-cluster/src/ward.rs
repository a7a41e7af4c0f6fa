//! Hierarchical clustering with Ward's criterion (CERE thesis, 2.3.1), by kodama.

use crate::point::ClusterError;
use serde::{Deserialize, Serialize};

/// A merge of two clusters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Merge {
    /// One of them: a point, or the number of points plus the index of an earlier merge.
    pub one: usize,
    /// The other; greater.
    pub other: usize,
    /// Their distance: the root of twice the rise of the within-cluster sum of squares, as in SciPy and R's `ward.D2`. That of two
    /// points is Euclidean.
    pub height: f64,
    /// Points of both.
    pub size: usize,
}

/// All merges of points, by rising height.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dendrogram {
    /// Number of points.
    pub points: usize,
    /// One less.
    pub merges: Vec<Merge>,
}

/// Merges `points`, whose coordinates have to be as many for each, until one cluster is left.
///
/// # Errors
/// There are no points; coordinates that differ in number, or are infinite or not a number.
pub fn ward(points: &[Vec<f64>]) -> Result<Dendrogram, ClusterError> {
    let width = points.first().ok_or(ClusterError::NoPoints)?.len();
    for (index, point) in points.iter().enumerate() {
        let index = index as u64;
        if point.len() != width {
            let (metrics, of) = (point.len(), width);
            return Err(ClusterError::Metrics { index, metrics, of });
        }
        if let Some(value) = point.iter().find(|v| !v.is_finite()) {
            let value = *value;
            return Err(ClusterError::Value { index, value });
        }
    }
    let mut distances = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    for (number, point) in points.iter().enumerate() {
        for other in &points[number + 1..] {
            distances.push(squares(point, other).sqrt());
        }
    }
    let found = kodama::linkage(&mut distances, points.len(), kodama::Method::Ward);
    let merges = found.steps().iter().map(|step| Merge {
        one: step.cluster1.min(step.cluster2),
        other: step.cluster1.max(step.cluster2),
        height: step.dissimilarity,
        size: step.size,
    });
    Ok(Dendrogram {
        points: points.len(),
        merges: merges.collect(),
    })
}

/// Squared Euclidean distance.
pub(crate) fn squares(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum()
}

impl Dendrogram {
    /// Whether the merges are those of a tree: what was read from a file may be anything.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let nodes = self.points + self.merges.len();
        let mut used = vec![false; nodes];
        self.points > 0
            && self.merges.len() + 1 == self.points
            && self.merges.iter().enumerate().all(|(number, merge)| {
                [merge.one, merge.other].into_iter().all(|node| {
                    node < self.points + number
                        && merge.height >= 0.0
                        && !std::mem::replace(&mut used[node], true)
                })
            })
    }

    /// The cluster of each point if there are `k`, numbered in the order of their first points.
    ///
    /// # Errors
    /// No cluster is asked for, or more than there are points.
    pub fn cut(&self, k: usize) -> Result<Vec<usize>, ClusterError> {
        if k == 0 || k > self.points {
            return Err(ClusterError::Clusters {
                clusters: k,
                points: self.points,
            });
        }
        let mut above: Vec<usize> = (0..self.points + self.merges.len()).collect();
        for (number, merge) in self.merges[..self.points - k].iter().enumerate() {
            above[merge.one] = self.points + number;
            above[merge.other] = self.points + number;
        }
        // A node's cluster is that of the node above it, which has a greater number.
        for node in (0..above.len()).rev() {
            above[node] = above[above[node]];
        }
        let mut names: Vec<usize> = Vec::with_capacity(k);
        let mut labels = Vec::with_capacity(self.points);
        for root in &above[..self.points] {
            let known = names.iter().position(|name| name == root);
            labels.push(known.unwrap_or(names.len()));
            if known.is_none() {
                names.push(*root);
            }
        }
        Ok(labels)
    }

    /// The points in an order in which no two branches of the tree cross.
    #[must_use]
    pub fn order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.points);
        let mut next = vec![(self.points + self.merges.len()).saturating_sub(1)];
        while let Some(node) = next.pop() {
            match node.checked_sub(self.points) {
                Some(merge) => next.extend([self.merges[merge].other, self.merges[merge].one]),
                None => order.push(node),
            }
        }
        order
    }
}
