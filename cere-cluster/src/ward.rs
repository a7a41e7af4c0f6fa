//! Hierarchical clustering with Ward's criterion (CERE thesis, 2.3.1), by kodama.

use crate::point::{ClusterError, squares, width};
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

/// Merges `points` until one cluster is left, always the two clusters whose union raises the within-cluster sum of squares least.
/// Needs memory for points² / 2 distances.
///
/// # Errors
/// There are no points; coordinates that differ in number, are not numbers, or are beyond 1e100.
pub fn ward(points: &[Vec<f64>]) -> Result<Dendrogram, ClusterError> {
    width(points)?;
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

impl Dendrogram {
    /// Whether the merges are those of one tree, by rising height: what was read from a file may be anything.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        if self.points == 0 || self.merges.len() != self.points - 1 {
            return false;
        }
        // The points of each node, 0 once it is merged.
        let mut sizes = vec![1; self.points];
        let mut height = 0.0;
        self.merges.iter().all(|merge| {
            let mut take = |node: usize| sizes.get_mut(node).map_or(0, std::mem::take);
            let (one, other) = (take(merge.one), take(merge.other));
            sizes.push(merge.size);
            let rises = merge.height >= height && merge.height.is_finite();
            height = merge.height;
            rises && one > 0 && other > 0 && one + other == merge.size
        })
    }

    /// The cluster of each point if there are `k`, numbered in the order of their first points: that of all merges but the last
    /// `k` - 1.
    ///
    /// # Errors
    /// No cluster is asked for, or more than there are points; the merges are not a tree.
    pub fn cut(&self, k: usize) -> Result<Vec<usize>, ClusterError> {
        let (points, merges) = (self.points, self.merges.len());
        if !self.is_whole() {
            return Err(ClusterError::Tree { points, merges });
        }
        if k == 0 || k > points {
            let clusters = k;
            return Err(ClusterError::Clusters { clusters, points });
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

    /// The points in an order in which no two branches of the tree cross, for drawing. None if the merges are not a tree.
    #[must_use]
    pub fn order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.points);
        if !self.is_whole() {
            return order;
        }
        let mut next = vec![self.points + self.merges.len() - 1];
        while let Some(node) = next.pop() {
            match node.checked_sub(self.points) {
                Some(merge) => next.extend([self.merges[merge].other, self.merges[merge].one]),
                None => order.push(node),
            }
        }
        order
    }
}
