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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::within::within;
    use proptest::prelude::*;

    #[test]
    fn heights() {
        // Pairs {0, 1} and {10, 11}, one apart: each rises by 1/2. Both: the rise is 2 * 2 / 4 * 10^2.
        let points = [0.0, 10.0, 1.0, 11.0].map(|x| vec![x]);
        let tree = ward(&points).unwrap();
        let heights: Vec<f64> = tree.merges.iter().map(|m| m.height).collect();
        assert_eq!(heights, [1.0, 1.0, 200f64.sqrt()]);
        let last = tree.merges[2];
        assert_eq!((last.one, last.other, last.size), (4, 5, 4));
        assert_eq!(tree.cut(1).unwrap(), [0, 0, 0, 0]);
        assert_eq!(tree.cut(2).unwrap(), [0, 1, 0, 1]);
        assert_eq!(tree.cut(4).unwrap(), [0, 1, 2, 3]);
        for clusters in [0, 5] {
            let error = ClusterError::Clusters {
                clusters,
                points: 4,
            };
            assert_eq!(tree.cut(clusters), Err(error));
        }
    }

    #[test]
    fn one_point_and_equal_points() {
        let one = ward(&[vec![3.0]]).unwrap();
        assert_eq!((one.cut(1), one.order()), (Ok(vec![0]), vec![0]));
        let same = ward(&vec![vec![0.1, 0.2]; 5]).unwrap();
        assert!(same.merges.iter().all(|m| m.height == 0.0));
        assert_eq!(same.cut(5), Ok(vec![0, 1, 2, 3, 4]));
        // Points without coordinates are equal.
        assert_eq!(ward(&[vec![], vec![]]).unwrap().merges[0].height, 0.0);
    }

    #[test]
    fn points_that_cannot_be_merged() {
        assert_eq!(ward(&[]), Err(ClusterError::NoPoints));
        let of = |second: Vec<f64>| ward(&[vec![1.0, 2.0], second]).unwrap_err().to_string();
        assert_eq!(of(vec![1.0]), "point 1 has 1 metrics, the others 2");
        assert!(of(vec![1.0, f64::NAN]).starts_with("point 1 has a metric that is NaN"));
        assert!(of(vec![-1e200, 1.0]).ends_with("between -1e100 and 1e100"));
    }

    /// A file may say anything.
    #[test]
    fn merges_that_are_no_tree() {
        let tree = ward(&[0.0, 1.0, 5.0].map(|x| vec![x])).unwrap();
        let text = serde_json::to_string(&tree).unwrap();
        assert_eq!(serde_json::from_str::<Dendrogram>(&text).unwrap(), tree);
        let changes: [fn(&mut Dendrogram); 9] = [
            |t| t.points = 0,
            |t| t.points = 4,
            |t| t.merges.truncate(1),
            |t| t.merges[1].other = 4,
            |t| t.merges[0].other = 9,
            |t| t.merges[1].one = 0,
            |t| t.merges[1].size = 2,
            |t| t.merges[1].height = 0.5,
            |t| t.merges[0].height = f64::NAN,
        ];
        for change in changes {
            let mut changed = tree.clone();
            change(&mut changed);
            let error = changed.cut(2).unwrap_err();
            assert!(matches!(error, ClusterError::Tree { .. }), "{changed:?}");
            assert!(changed.order().is_empty());
        }
    }

    proptest! {
        #[test]
        fn each_merge_raises_the_sum_of_squares_least(
            points in prop::collection::vec(prop::collection::vec(-9.0f64..9.0, 2), 2..9)
        ) {
            let tree = ward(&points).unwrap();
            for clusters in 2..=points.len() {
                let labels = tree.cut(clusters).unwrap();
                let before = within(&points, &labels).unwrap();
                let rise = |one: usize, other: usize| {
                    let renamed = |l: usize| if l == other { one } else { l - usize::from(l > other) };
                    let merged: Vec<usize> = labels.iter().map(|l| renamed(*l)).collect();
                    within(&points, &merged).unwrap() - before
                };
                let pairs = (0..clusters).flat_map(|other| (0..other).map(move |one| (one, other)));
                let least = pairs.map(|(one, other)| rise(one, other)).fold(f64::INFINITY, f64::min);
                let height = tree.merges[points.len() - clusters].height;
                prop_assert!((height * height / 2.0 - least).abs() < 1e-9);
                // The cut with fewer clusters unites two of these.
                let fewer = tree.cut(clusters - 1).unwrap();
                let mut pairs: Vec<_> = labels.iter().zip(&fewer).collect();
                pairs.sort();
                pairs.dedup();
                prop_assert_eq!(pairs.len(), clusters);
            }
        }
    }
}
