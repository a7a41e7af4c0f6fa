//! Points on a line: there the best medoids are found, not just good ones, by dynamic programming over the sorted
//! points. A cluster is a stretch of them, its medoid their weighted median; the first point of the last cluster only
//! moves right as points are added, so each row is filled by divide and conquer (Grønlund et al., Fast exact k-means,
//! k-medians and Bregman divergence clustering in 1D, 2017).

use crate::pam::Clustering;
use crate::point::{ClusterError, valid};

/// The medoids that make the weighted sum of distances least, of all choices. `build_cost` is `cost` here.
/// Time is that of points x log² points x clusters.
pub fn line(points: &[f64], weights: &[f64], clusters: usize) -> Result<Clustering, ClusterError> {
    if points.is_empty() {
        return Err(ClusterError::NoPoints);
    }
    if points.len() != weights.len() {
        return Err(ClusterError::Weights {
            points: points.len(),
            weights: weights.len(),
        });
    }
    if clusters == 0 || clusters > points.len() {
        return Err(ClusterError::Clusters {
            clusters,
            points: points.len(),
        });
    }
    for index in 0..points.len() {
        if !valid(weights[index]) {
            return Err(ClusterError::Weight {
                index: index as u64,
                weight: weights[index],
            });
        }
        if !points[index].is_finite() {
            return Err(ClusterError::Distance {
                one: index as u64,
                other: index as u64,
                distance: points[index],
            });
        }
    }
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|a, b| points[*a].total_cmp(&points[*b]).then(a.cmp(b)));
    let mut row = Line::new(order.iter().map(|i| (points[*i], weights[*i])));
    for _ in 1..clusters {
        row.split();
    }
    let mut medoids: Vec<usize> = row.medoids().iter().map(|place| order[*place]).collect();
    medoids.sort_unstable();
    let nearest = |point: &f64| {
        let far = |m: &usize| (points[*m] - point).abs();
        (0..clusters)
            .min_by(|a, b| far(&medoids[*a]).total_cmp(&far(&medoids[*b])))
            .unwrap_or(0)
    };
    let assignment: Vec<usize> = points.iter().map(nearest).collect();
    let cost = (0..points.len())
        .map(|i| weights[i] * (points[medoids[assignment[i]]] - points[i]).abs())
        .sum();
    Ok(Clustering {
        medoids,
        assignment,
        cost,
        build_cost: cost,
    })
}

/// The best clusters of points in rising order, one more with each [`Line::split`].
pub(crate) struct Line {
    values: Vec<f64>,
    /// Sums of the weights before each point, and after the last.
    weight: Vec<f64>,
    /// Sums of weight times value likewise.
    moment: Vec<f64>,
    /// Least cost of the points before each one, in the clusters made so far.
    best: Vec<f64>,
    /// A row a split: where the last cluster of the points before each one begins.
    begins: Vec<Vec<u32>>,
}

impl Line {
    /// One cluster of `points` (value and weight, by rising value, not none).
    pub fn new(points: impl Iterator<Item = (f64, f64)>) -> Self {
        let (values, weights): (Vec<f64>, Vec<f64>) = points.unzip();
        // Sums around the middle lose fewer digits.
        let middle = values[values.len() / 2];
        let mut line = Self {
            weight: vec![0.0],
            moment: vec![0.0],
            best: Vec::new(),
            begins: Vec::new(),
            values: values.iter().map(|v| v - middle).collect(),
        };
        for (value, weight) in line.values.iter().zip(&weights) {
            line.weight
                .push(line.weight[line.weight.len() - 1] + weight);
            line.moment
                .push(line.moment[line.moment.len() - 1] + weight * value);
        }
        line.best = (0..=line.values.len())
            .map(|end| line.cost(0, end))
            .collect();
        line
    }

    /// Cost of all points in the clusters made so far.
    pub fn total(&self) -> f64 {
        self.best[self.values.len()]
    }

    /// Makes one more; there must be fewer than points.
    pub fn split(&mut self) {
        let points = self.values.len();
        let clusters = self.begins.len() + 2;
        let mut best = vec![f64::INFINITY; points + 1];
        let mut begins = vec![0; points + 1];
        // Ends of the stretch to fill, and bounds on where its last cluster may begin.
        let mut work = vec![(clusters, points, clusters - 1, points - 1)];
        while let Some((low, high, from, to)) = work.pop() {
            if low > high {
                continue;
            }
            let end = low + (high - low) / 2;
            let mut found = (f64::INFINITY, from);
            for begin in from..=to.min(end - 1) {
                let cost = self.best[begin] + self.cost(begin, end);
                if cost < found.0 {
                    found = (cost, begin);
                }
            }
            (best[end], begins[end]) = (found.0, found.1 as u32);
            work.push((low, end - 1, from, found.1));
            work.push((end + 1, high, found.1, to));
        }
        self.best = best;
        self.begins.push(begins);
    }

    /// Places of the clusters' medoids, rising.
    pub fn medoids(&self) -> Vec<usize> {
        let mut end = self.values.len();
        let mut medoids = Vec::new();
        for begins in self.begins.iter().rev() {
            let begin = begins[end] as usize;
            medoids.push(self.median(begin, end));
            end = begin;
        }
        medoids.push(self.median(0, end));
        medoids.reverse();
        medoids
    }

    fn median(&self, begin: usize, end: usize) -> usize {
        let half = (self.weight[begin] + self.weight[end]) / 2.0;
        let within = &self.weight[begin + 1..end];
        begin + within.partition_point(|sum| *sum < half)
    }

    fn cost(&self, begin: usize, end: usize) -> f64 {
        if begin == end {
            return 0.0;
        }
        let median = self.median(begin, end);
        let value = self.values[median];
        let left = value * (self.weight[median] - self.weight[begin])
            - (self.moment[median] - self.moment[begin]);
        let right = (self.moment[end] - self.moment[median])
            - value * (self.weight[end] - self.weight[median]);
        (left + right).max(0.0)
    }
}
