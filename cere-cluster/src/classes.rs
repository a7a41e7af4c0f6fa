//! Performance classes of a region's invocations (CERE thesis, 4.2.1), and the invocations that represent them.

use crate::clara::{Sampling, clara};
use crate::line::Line;
use crate::point::{ClusterError, Point, valid};
use std::collections::BTreeMap;

/// Number of different times up to which the classes are optimal; beyond it CLARA makes them.
pub const EXACT_TIMES: usize = 1 << 14;

/// An invocation whose time was kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// Its number, from 1.
    pub invocation: u64,
    /// Its inclusive cycles; 0 and `u64::MAX` mean unknown: it is ignored.
    pub cycles: u64,
    /// Number of invocations that it represents.
    pub weight: f64,
}

impl Point for Timed {
    fn distance(&self, other: &Self) -> f64 {
        self.cycles.abs_diff(other.cycles) as f64
    }
}

/// The region of the kept invocations as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whole {
    /// Its invocations.
    pub invocations: u64,
    /// Time of all of them, in any unit.
    pub total: f64,
}

/// When there are enough classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criterion {
    /// The smallest number of classes is chosen whose mean absolute deviation from the own medoid, over the mean cycles, is at
    /// most this.
    pub deviation: f64,
    /// Maximum number of classes, whatever the deviation; 0 counts as 1.
    pub most: usize,
}

impl Default for Criterion {
    fn default() -> Self {
        Self {
            deviation: 0.05,
            most: 10,
        }
    }
}

/// Invocations that take about the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Class {
    /// The medoid, which represents the class: a kept invocation. The lowest of those that take its time, the first
    /// invocation last.
    pub invocation: u64,
    /// Its cycles.
    pub cycles: u64,
    /// Invocations in the class; over all classes, those of the region.
    pub count: u64,
    /// Their time in the unit of [`Whole::total`]; over all classes, that.
    pub total: f64,
    /// Minimum cycles of its kept invocations.
    pub least: u64,
    /// Maximum cycles of its kept invocations.
    pub most: u64,
    /// Mean absolute deviation from the medoid, in cycles.
    pub deviation: f64,
}

/// The performance classes of a region.
#[derive(Debug, Clone, PartialEq)]
pub struct Classes {
    /// At least one, by falling total.
    pub classes: Vec<Class>,
    /// Mean absolute deviation from the own medoid over mean cycles; above the criterion's where even the most classes
    /// that it allows do not reach it.
    pub deviation: f64,
    /// Whether these are CLARA's classes: see [`EXACT_TIMES`].
    pub sampled: bool,
}

impl Classes {
    /// The class, as index in `classes`, of an invocation that took `cycles`.
    pub fn of(&self, cycles: u64) -> usize {
        nearest(self.classes.iter().map(|c| c.cycles), cycles)
    }
}

/// No classes could be made.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ClassError {
    /// No invocation was kept, or all took less than the resolution of the clock.
    #[error("none of the region's invocations was kept with a time above zero")]
    NoTimes,
    /// More invocations than the region had.
    #[error("{kept} invocations were kept of a region that was entered {invocations} times")]
    Invocations {
        /// Kept ones.
        kept: u64,
        /// What the region is said to have had.
        invocations: u64,
    },
    /// The total is negative, infinite or not a number.
    #[error("the region's total time is {0}")]
    Total(f64),
    /// The clustering failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Performance classes of the kept invocations that each call of `source` gives anew, the same in the same order.
/// Memory is bounded whatever the source.
pub fn classes<I: Iterator<Item = Timed>>(
    source: impl Fn() -> I,
    whole: Whole,
    criterion: Criterion,
) -> Result<Classes, ClassError> {
    if !valid(whole.total) {
        return Err(ClassError::Total(whole.total));
    }
    let known = || source().filter(|t| !matches!(t.cycles, 0 | u64::MAX));
    let (mut kept, mut weight, mut sum) = (0, 0.0, 0.0);
    let mut times: Option<BTreeMap<u64, f64>> = Some(BTreeMap::new());
    for timed in known() {
        if !valid(timed.weight) {
            return Err(ClassError::Cluster(ClusterError::Weight {
                index: kept,
                weight: timed.weight,
            }));
        }
        kept += 1;
        weight += timed.weight;
        sum += timed.weight * timed.cycles as f64;
        if let Some(map) = &mut times {
            *map.entry(timed.cycles).or_default() += timed.weight;
            if map.len() > EXACT_TIMES {
                times = None;
            }
        }
    }
    if kept == 0 {
        return Err(ClassError::NoTimes);
    }
    if kept > whole.invocations {
        return Err(ClassError::Invocations {
            kept,
            invocations: whole.invocations,
        });
    }
    if sum == 0.0 {
        return Err(ClassError::Cluster(ClusterError::NoWeight));
    }
    let enough = |cost: f64| cost <= criterion.deviation * sum;
    let (mut medoids, sampled) = match &times {
        Some(times) => (exact(times, &criterion, enough), false),
        None => (sample(&known, &criterion, enough)?, true),
    };
    medoids.sort_unstable();
    let sums = sum_up(known(), &medoids);
    let deviation = sums.iter().map(|s| s.deviation).sum::<f64>() / sum;
    let counts = counts(&sums, whole.invocations, weight);
    let mut classes: Vec<Class> = sums
        .iter()
        .zip(medoids)
        .zip(counts)
        .map(|((of, cycles), count)| Class {
            invocation: of.invocation,
            cycles,
            count,
            total: whole.total * (of.cycles / sum),
            least: of.least,
            most: of.most,
            deviation: of.deviation / of.weight.max(f64::MIN_POSITIVE),
        })
        .collect();
    classes.sort_by(|a, b| {
        let order = b.total.total_cmp(&a.total);
        order.then(a.invocation.cmp(&b.invocation))
    });
    Ok(Classes {
        classes,
        deviation,
        sampled,
    })
}

/// The medoids' times, the best there are.
fn exact(
    times: &BTreeMap<u64, f64>,
    criterion: &Criterion,
    enough: impl Fn(f64) -> bool,
) -> Vec<u64> {
    // A time without weight must not make a class.
    let times: Vec<(u64, f64)> = times
        .iter()
        .filter(|(_, weight)| **weight > 0.0)
        .map(|(time, weight)| (*time, *weight))
        .collect();
    let mut line = Line::new(times.iter().map(|(time, weight)| (*time as f64, *weight)));
    let mut clusters = 1;
    while !enough(line.total()) && clusters < criterion.most.min(times.len()) {
        line.split();
        clusters += 1;
    }
    line.medoids().iter().map(|place| times[*place].0).collect()
}

/// The medoids' times, from samples.
fn sample<I: Iterator<Item = Timed>>(
    known: &impl Fn() -> I,
    criterion: &Criterion,
    enough: impl Fn(f64) -> bool,
) -> Result<Vec<u64>, ClusterError> {
    let mut clusters = 1;
    loop {
        let points = || known().map(|timed| (timed, timed.weight));
        let found = clara(points, clusters, Sampling::default())?;
        if enough(found.cost) || clusters >= criterion.most {
            let mut medoids: Vec<u64> = found.medoids.iter().map(|m| m.1.cycles).collect();
            medoids.sort_unstable();
            medoids.dedup();
            return Ok(medoids);
        }
        clusters += 1;
    }
}

/// Sums over the invocations of a class.
#[derive(Clone)]
struct Sum {
    invocation: u64,
    weight: f64,
    cycles: f64,
    deviation: f64,
    least: u64,
    most: u64,
}

/// One sum for each medoid's time.
fn sum_up(known: impl Iterator<Item = Timed>, medoids: &[u64]) -> Vec<Sum> {
    let empty = Sum {
        invocation: 0,
        weight: 0.0,
        cycles: 0.0,
        deviation: 0.0,
        least: u64::MAX,
        most: 0,
    };
    let mut sums = vec![empty; medoids.len()];
    for timed in known {
        let class = nearest(medoids.iter().copied(), timed.cycles);
        let (sum, medoid) = (&mut sums[class], medoids[class]);
        sum.weight += timed.weight;
        sum.cycles += timed.weight * timed.cycles as f64;
        sum.deviation += timed.weight * timed.cycles.abs_diff(medoid) as f64;
        sum.least = sum.least.min(timed.cycles);
        sum.most = sum.most.max(timed.cycles);
        let better = match sum.invocation {
            0 => true,
            1 => timed.invocation > 1,
            lowest => (2..lowest).contains(&timed.invocation),
        };
        if timed.cycles == medoid && better {
            sum.invocation = timed.invocation;
        }
    }
    sums
}

/// Distributes `invocations` by the classes' weights, by largest remainders, with at least one for each class.
fn counts(sums: &[Sum], invocations: u64, weight: f64) -> Vec<u64> {
    let exact: Vec<f64> = sums
        .iter()
        .map(|s| invocations as f64 * (s.weight / weight))
        .collect();
    let mut counts: Vec<u64> = exact.iter().map(|e| (*e as u64).max(1)).collect();
    loop {
        let given: u64 = counts.iter().sum();
        let over = |class: &usize| counts[*class] as f64 - exact[*class];
        let order = |a: &usize, b: &usize| over(a).total_cmp(&over(b));
        let places = 0..counts.len();
        let change = match given.cmp(&invocations) {
            std::cmp::Ordering::Equal => return counts,
            std::cmp::Ordering::Less => places.min_by(order).map(|c| (c, 1)),
            std::cmp::Ordering::Greater => {
                let several = places.filter(|c| counts[*c] > 1);
                several.max_by(order).map(|c| (c, -1))
            }
        };
        let Some((class, by)) = change else {
            return counts;
        };
        counts[class] = counts[class].saturating_add_signed(by);
    }
}

/// Index of the nearest of `medoids`; at equal distance that of the shorter one.
fn nearest(medoids: impl Iterator<Item = u64>, cycles: u64) -> usize {
    medoids
        .enumerate()
        .min_by_key(|(_, medoid)| (medoid.abs_diff(cycles), *medoid))
        .map_or(0, |(place, _)| place)
}
