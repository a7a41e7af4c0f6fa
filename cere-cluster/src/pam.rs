//! PAM: partitioning around medoids (Kaufman and Rousseeuw, Finding Groups in Data, 1990, chapter 2), with the swaps
//! evaluated for all medoids at once (FastPAM1: Schubert and Rousseeuw, SISAP 2019).

use crate::point::{ClusterError, Point, valid};

/// Points around medoids.
#[derive(Debug, Clone, PartialEq)]
pub struct Clustering {
    /// Indices of the medoids, rising.
    pub medoids: Vec<usize>,
    /// A point's place in `medoids`: the nearest, at equal distance the first.
    pub assignment: Vec<usize>,
    /// Sum of the weighted dissimilarities to the own medoid.
    pub cost: f64,
    /// That sum after BUILD, before SWAP.
    pub build_cost: f64,
}

/// `clusters` medoids among as many points as there are `weights`, so that no exchange of a medoid for another point
/// makes the weighted sum of dissimilarities smaller. Ties go to the lowest index. Time is that of
/// points² x (clusters + exchanges) dissimilarities, memory that of the points.
pub fn pam(
    weights: &[f64],
    clusters: usize,
    distance: impl Fn(usize, usize) -> f64,
) -> Result<Clustering, ClusterError> {
    let points = weights.len();
    if points == 0 {
        return Err(ClusterError::NoPoints);
    }
    if clusters == 0 || clusters > points {
        return Err(ClusterError::Clusters { clusters, points });
    }
    if let Some(index) = weights.iter().position(|w| !valid(*w)) {
        return Err(ClusterError::Weight {
            index: index as u64,
            weight: weights[index],
        });
    }
    for one in 0..points {
        for other in 0..=one {
            let distance = distance(one, other);
            if !valid(distance) {
                return Err(ClusterError::Distance {
                    one: one as u64,
                    other: other as u64,
                    distance,
                });
            }
        }
    }
    let mut state = State::build(weights, clusters, &distance);
    let build_cost = state.cost();
    while state.swap() {}
    state.medoids.sort_unstable();
    state.refresh();
    Ok(Clustering {
        cost: state.cost(),
        build_cost,
        assignment: state.near.iter().map(|n| n.medoid).collect(),
        medoids: state.medoids,
    })
}

/// [`pam`] of points that know their dissimilarity.
pub fn pam_points<P: Point>(
    points: &[P],
    weights: &[f64],
    clusters: usize,
) -> Result<Clustering, ClusterError> {
    if points.len() != weights.len() {
        return Err(ClusterError::Weights {
            points: points.len(),
            weights: weights.len(),
        });
    }
    pam(weights, clusters, |a, b| points[a].distance(&points[b]))
}

/// A point's nearest medoid, and how far that and the second nearest are.
#[derive(Clone, Copy)]
struct Near {
    medoid: usize,
    first: f64,
    second: f64,
}

struct State<'a, D> {
    weights: &'a [f64],
    distance: &'a D,
    medoids: Vec<usize>,
    near: Vec<Near>,
}

impl<'a, D: Fn(usize, usize) -> f64> State<'a, D> {
    /// BUILD: the most central point, then again and again the one that lessens the sum most.
    fn build(weights: &'a [f64], clusters: usize, distance: &'a D) -> Self {
        let far = Near {
            medoid: 0,
            first: f64::INFINITY,
            second: f64::INFINITY,
        };
        let mut state = Self {
            weights,
            distance,
            medoids: Vec::with_capacity(clusters),
            near: vec![far; weights.len()],
        };
        while state.medoids.len() < clusters {
            let sum = |candidate: usize| -> f64 {
                let cost = |(point, near): (usize, &Near)| {
                    weights[point] * near.first.min(distance(candidate, point))
                };
                state.near.iter().enumerate().map(cost).sum()
            };
            let mut best = (f64::INFINITY, usize::MAX);
            for candidate in (0..weights.len()).filter(|c| !state.medoids.contains(c)) {
                let sum = sum(candidate);
                if sum < best.0 || best.1 == usize::MAX {
                    best = (sum, candidate);
                }
            }
            state.medoids.push(best.1);
            state.refresh();
        }
        state
    }

    fn refresh(&mut self) {
        for (point, near) in self.near.iter_mut().enumerate() {
            let (mut medoid, mut first, mut second) = (0, f64::INFINITY, f64::INFINITY);
            for (place, at) in self.medoids.iter().enumerate() {
                let distance = (self.distance)(*at, point);
                if distance < first {
                    (medoid, first, second) = (place, distance, first);
                } else if distance < second {
                    second = distance;
                }
            }
            *near = Near {
                medoid,
                first,
                second,
            };
        }
    }

    fn cost(&self) -> f64 {
        let cost = |(near, weight): (&Near, &f64)| near.first * weight;
        self.near.iter().zip(self.weights).map(cost).sum()
    }

    /// SWAP: makes the best exchange; false if none lessens the sum.
    fn swap(&mut self) -> bool {
        // What losing a medoid costs while no point comes in its place.
        let mut loss = vec![0.0; self.medoids.len()];
        for (near, weight) in self.near.iter().zip(self.weights) {
            if near.second.is_finite() {
                loss[near.medoid] += weight * (near.second - near.first);
            }
        }
        let alone = self.medoids.len() == 1;
        // Exchanges that gain nothing but rounding would go round in circles.
        let mut best = (-1e-12 * self.cost(), usize::MAX, 0);
        let mut change = vec![0.0; self.medoids.len()];
        for candidate in (0..self.weights.len()).filter(|c| !self.medoids.contains(c)) {
            change.copy_from_slice(&loss);
            let mut shared = 0.0;
            for (point, (near, weight)) in self.near.iter().zip(self.weights).enumerate() {
                let distance = (self.distance)(candidate, point);
                if alone {
                    shared += weight * (distance - near.first);
                } else if distance < near.first {
                    shared += weight * (distance - near.first);
                    change[near.medoid] += weight * (near.first - near.second);
                } else if distance < near.second {
                    change[near.medoid] += weight * (distance - near.second);
                }
            }
            for (place, own) in change.iter().enumerate() {
                if own + shared < best.0 {
                    best = (own + shared, candidate, place);
                }
            }
        }
        if best.1 == usize::MAX {
            return false;
        }
        let before = (self.cost(), self.medoids[best.2]);
        self.medoids[best.2] = best.1;
        self.refresh();
        if self.cost() < before.0 {
            return true;
        }
        self.medoids[best.2] = before.1;
        self.refresh();
        false
    }
}
