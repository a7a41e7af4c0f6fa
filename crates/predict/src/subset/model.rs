//! The model of every prediction from a subset, as pure functions: t_target = t_ref * t_rep,target / t_rep,ref over a cluster, and
//! the covered speed-up for the rest (CERE thesis, 6.4).

use crate::outcome::Outcome;
use crate::subset::document::Subset;
use crate::subset::rounds::{fast, noise};
use cere_cluster::{Replayed, predict as sum_up};
use cere_timing::stats::around;
use serde::Serialize;
use std::collections::BTreeMap;

/// Disagreement of representative and check, as a ratio above 1, beyond which a cluster is refused.
pub const DISAGREE: f64 = 1.25;

/// Covered share of a program below which it is not predicted.
pub const LEAST_COVERED: f64 = 0.5;

/// Time of a point on the target over that on the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Variance of its logarithm by the noise of both measurements.
    pub noise: f64,
}

impl Ratio {
    /// Of one codelet, from the rounds on both sides; both must hold a time.
    #[must_use]
    pub fn of(target: &[f64], reference: &[f64]) -> Self {
        Self {
            value: fast(target) / fast(reference),
            noise: noise(target) + noise(reference),
        }
    }

    /// Of one codelet whose code as built was timed in turns with it, on the target: the median of the rounds' ratios, with the
    /// variance of their logarithms over their number. The machine's own changes are in both.
    #[must_use]
    pub fn in_turns(rounds: &[(f64, f64)]) -> Option<Self> {
        let ratios: Vec<f64> = rounds.iter().map(|(there, built)| there / built).collect();
        let value = cere_timing::stats::median(&ratios)?;
        let apart: f64 = ratios.iter().map(|r| (r / value).ln().powi(2)).sum();
        let rounds = ratios.len() as f64;
        let noise = match ratios.len() {
            1 => 2.0 * 0.02f64.powi(2),
            _ => apart / (rounds - 1.0) / rounds,
        };
        Some(Self { value, noise })
    }

    /// Of a point: the mean over its codelets, weighted by their shares.
    pub fn of_point(parts: impl IntoIterator<Item = (f64, Self)>) -> Self {
        let (mut value, mut noise) = (0.0, 0.0);
        for (share, part) in parts {
            value += share * part.value;
            noise += (share * part.value).powi(2) * part.noise;
        }
        Self {
            value,
            noise: noise / (value * value).max(f64::MIN_POSITIVE),
        }
    }
}

/// A cluster from which nothing is predicted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refused {
    /// Its index in the subset.
    pub cluster: usize,
    /// `program/point` of the representative.
    pub representative: String,
    /// Seconds of programs on the reference that its members stand for, those measured themselves left out.
    pub seconds: f64,
    /// Why.
    pub reason: String,
}

/// A program on the target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predicted {
    /// Its name.
    pub name: String,
    /// Seconds on the reference machine.
    pub reference_seconds: f64,
    /// Its time there. Without a measured check there is no interval, as the spread within clusters is not known.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Everything that a target's ratios say of a subset.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// For each program of the subset.
    pub programs: Vec<Predicted>,
    /// Clusters without a use.
    pub refused: Vec<Refused>,
    /// `program/point` of representatives that stand for members which nothing checks: the cluster has no check, or it failed there.
    pub unchecked: Vec<String>,
    /// Ratio of each point, as far as it is known, and whether it was measured itself.
    pub ratios: Vec<Option<(f64, bool)>>,
    /// Standard deviation of the logarithm of a member's ratio from its representative's, by the checks.
    pub deviation: Option<f64>,
    /// Checks that it was made of.
    pub checks: usize,
}

/// A source of a point's ratio.
#[derive(Clone, Copy)]
enum Known {
    /// Measured itself.
    Own(Ratio),
    /// That of the cluster.
    Cluster(usize, Ratio),
}

impl Known {
    fn value(self) -> f64 {
        match self {
            Self::Own(ratio) | Self::Cluster(_, ratio) => ratio.value,
        }
    }
}

/// How far members are from their representatives, by the checks.
#[derive(Clone, Copy)]
struct Deviation {
    /// Variance of the logarithm of their ratio; none without a check.
    variance: Option<f64>,
    checks: usize,
}

/// Predicts all programs of `subset` from the measured `ratios` of its points. Only those of representatives and checks are used, so
/// that a target where all points were measured gives the same.
#[must_use]
pub fn predict(subset: &Subset, ratios: &[Option<Ratio>], disagree: f64) -> Prediction {
    let mut found = Gathered {
        known: vec![None; subset.points.len()],
        squares: Vec::new(),
        refused: Vec::new(),
        unchecked: Vec::new(),
    };
    for number in 0..subset.clusters.len() {
        found.add_cluster(subset, number, ratios, disagree);
    }
    let by_time = |a: &Refused, b: &Refused| b.seconds.total_cmp(&a.seconds);
    found.refused.sort_by(by_time);
    let checks = found.squares.len();
    let mean = || found.squares.iter().sum::<f64>() / checks as f64;
    let variance = (checks > 0).then(|| mean().max(0.0));
    let deviation = Deviation { variance, checks };
    let programs = 0..subset.programs.len();
    Prediction {
        programs: programs
            .map(|program| of_program(subset, program, &found.known, deviation))
            .collect(),
        refused: found.refused,
        unchecked: found.unchecked,
        ratios: (found.known.iter())
            .map(|k| k.map(|k| (k.value(), matches!(k, Known::Own(_)))))
            .collect(),
        deviation: variance.map(f64::sqrt),
        checks,
    }
}

/// What the clusters that were looked at so far say.
struct Gathered {
    /// The ratio of each point.
    known: Vec<Option<Known>>,
    /// For each check, the square of the logarithm of its ratio over its representative's, less the noise of both.
    squares: Vec<f64>,
    refused: Vec<Refused>,
    unchecked: Vec<String>,
}

impl Gathered {
    fn add_cluster(
        &mut self,
        subset: &Subset,
        number: usize,
        ratios: &[Option<Ratio>],
        disagree: f64,
    ) {
        let cluster = &subset.clusters[number];
        let wanted = std::iter::once(&cluster.representative).chain(&cluster.checks);
        let measured: Vec<(usize, Ratio)> = wanted
            .filter_map(|point| Some((*point, ratios.get(*point).copied().flatten()?)))
            .collect();
        for (point, ratio) in &measured {
            self.known[*point] = Some(Known::Own(*ratio));
        }
        // A representative that cannot be replayed there has a check in its place.
        let reason = match measured.split_first() {
            None => Some("none of its measured members has a time there".to_owned()),
            Some((lead, checks)) => {
                let found = disagreement(subset, *lead, checks, disagree);
                if found.is_none() {
                    self.add_agreeing(subset, number, lead.1, checks);
                }
                found
            }
        };
        let left = cluster.members.iter();
        let left = left.filter(|p| self.known[**p].is_none());
        let seconds: f64 = left.map(|p| subset.points[*p].seconds).sum();
        if let Some(reason) = reason.filter(|_| seconds > 0.0) {
            self.refused.push(Refused {
                cluster: number,
                representative: subset.point_name(cluster.representative),
                seconds,
                reason,
            });
        }
    }

    /// Gives the `ratio` of a cluster to its members without one. Only here do its checks count: what a refused cluster spreads says
    /// nothing of those that are used.
    fn add_agreeing(
        &mut self,
        subset: &Subset,
        number: usize,
        ratio: Ratio,
        checks: &[(usize, Ratio)],
    ) {
        let cluster = &subset.clusters[number];
        self.squares.extend(checks.iter().map(|(_, check)| {
            let (distance, noise) = apart(ratio, *check);
            distance * distance - noise
        }));
        let inherits = cluster.members.iter().any(|p| self.known[*p].is_none());
        if checks.is_empty() && inherits {
            self.unchecked
                .push(subset.point_name(cluster.representative));
        }
        for point in &cluster.members {
            self.known[*point].get_or_insert(Known::Cluster(number, ratio));
        }
    }
}

/// Logarithm of the ratio of two measured ratios, and its variance by noise.
fn apart(ratio: Ratio, other: Ratio) -> (f64, f64) {
    ((other.value / ratio.value).ln(), ratio.noise + other.noise)
}

/// How the first of `checks` that contradicts the point `lead` does so.
fn disagreement(
    subset: &Subset,
    (lead, ratio): (usize, Ratio),
    checks: &[(usize, Ratio)],
    disagree: f64,
) -> Option<String> {
    let contradicts = |(_, other): &&(usize, Ratio)| {
        let (distance, noise) = apart(ratio, *other);
        distance.abs() > disagree.ln() + 2.0 * noise.sqrt()
    };
    let (check, other) = checks.iter().find(contradicts)?;
    Some(format!(
        "{} takes {:.2} and {} {:.2} times as long there as on the reference",
        subset.point_name(lead),
        ratio.value,
        subset.point_name(*check),
        other.value
    ))
}

fn of_program(
    subset: &Subset,
    program: usize,
    known: &[Option<Known>],
    deviation: Deviation,
) -> Predicted {
    let of = &subset.programs[program];
    let covered = Covered::of(subset, program, known);
    let share = covered.seconds / of.seconds;
    let mut outcome = Outcome {
        covered: share.min(1.0),
        ..Outcome::default()
    };
    if share < LEAST_COVERED {
        outcome.reason = Some(format!(
            "{:.0} % of its time is covered, less than {:.0} %",
            100.0 * share,
            100.0 * LEAST_COVERED
        ));
    } else {
        let seconds = of.seconds * covered.there / covered.seconds;
        outcome.predicted_seconds = Some(seconds);
        let rest = (of.seconds - covered.seconds).max(0.0) * covered.there / covered.seconds;
        match covered.error(rest, deviation) {
            Some((error, freedom)) => {
                let (low, high) = around(seconds, error, freedom);
                (outcome.low, outcome.high) = (Some(low), Some(high));
            }
            None => outcome.reason = Some(NO_INTERVAL.to_owned()),
        }
    }
    Predicted {
        name: of.name.clone(),
        reference_seconds: of.seconds,
        outcome,
    }
}

const NO_INTERVAL: &str = "no interval: without a measured check the distance of members from representatives is unknown \
                           (--checks)";

/// The points of a program whose ratios are known.
struct Covered {
    /// Seconds on the reference, and the ratio, of each.
    points: Vec<(f64, Known)>,
    /// Seconds of all on the reference.
    seconds: f64,
    /// Seconds of all on the target; no number without points.
    there: f64,
}

impl Covered {
    fn of(subset: &Subset, program: usize, known: &[Option<Known>]) -> Self {
        let all = subset.points.iter().zip(known);
        let points: Vec<(f64, Known)> = all
            .filter(|(point, _)| point.program == program)
            .filter_map(|(point, known)| Some((point.seconds, (*known)?)))
            .collect();
        let classes: Vec<Replayed> = points
            .iter()
            .map(|(seconds, known)| Replayed {
                total: *seconds,
                reference: 1.0,
                target: known.value(),
            })
            .collect();
        Self {
            seconds: points.iter().fold(0.0, |sum, (seconds, _)| sum + seconds),
            there: sum_up(&classes).unwrap_or(f64::NAN),
            points,
        }
    }

    /// Standard error of the predicted time of the whole program, as a share of it, with its degrees of freedom: the `rest` of the program
    /// takes so many seconds on the target. None if the distance of members from representatives is needed and not known.
    fn error(&self, rest: f64, deviation: Deviation) -> Option<(f64, usize)> {
        let of_rest = self.variance_of_rest(rest, deviation.variance)?;
        let inherited = |(_, known): &(f64, Known)| matches!(known, Known::Cluster(..));
        let inherits = self.points.iter().any(inherited);
        let variance = deviation.variance.or((!inherits).then_some(0.0))?;
        // In units of covered seconds on the target: noise of a representative is common to its members, their distance from it is not.
        let mut squares = 0.0;
        let mut common: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (seconds, known) in &self.points {
            let there = seconds * known.value();
            match known {
                Known::Own(ratio) => squares += there * there * ratio.noise,
                Known::Cluster(number, ratio) => {
                    squares += there * there * variance;
                    common.entry(*number).or_insert((0.0, ratio.noise)).0 += there;
                }
            }
        }
        let shared = common.values().map(|(sum, noise)| sum * sum * noise);
        squares += shared.sum::<f64>();
        squares += rest * rest * of_rest;
        let freedom = match (inherits, of_rest > 0.0) {
            (true, _) => deviation.checks,
            (false, true) => deviation.checks.max(self.points.len() - 1),
            // The noise is that of the points' rounds.
            (false, false) => self.points.len(),
        };
        Some((squares.sqrt() / (self.there + rest), freedom))
    }

    /// Variance of the logarithm of the ratio of the program's rest: it is one more point with the covered speed-up, as far from it as the
    /// covered points are. None if that is not known.
    fn variance_of_rest(&self, rest: f64, variance: Option<f64>) -> Option<f64> {
        let mean = self.there / self.seconds;
        let squares = |(s, known): &(f64, Known)| s * (known.value() / mean).ln().powi(2);
        let apart = self.points.iter().map(squares).sum::<f64>() / self.seconds;
        match (variance, self.points.len()) {
            _ if rest <= 1e-3 * self.there => Some(0.0),
            (Some(variance), _) => Some(apart.max(variance)),
            (None, 2..) => Some(apart),
            (None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests;
