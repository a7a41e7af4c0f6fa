//! The model of every prediction from a subset, as pure functions: t_target = t_ref * t_rep,target / t_rep,ref over a cluster, and
//! the covered speed-up for the rest (CERE thesis, 6.4).

use crate::subset::document::Subset;
use crate::subset::rounds::{fast, noise};
use cere_cluster::{Replayed, predict as sum_up};
use cere_timing::stats::around;
use serde::Serialize;

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

/// A program's time on the target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predicted {
    /// The program.
    pub name: String,
    /// Seconds; none if too little of it is covered.
    pub predicted_seconds: Option<f64>,
    /// Lower end of the 95 % interval; none if no check was measured, so that the spread within clusters is not known.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Share of its time on the reference in points whose time on the target is known, 0 to 1.
    pub covered: f64,
    /// Seconds on the reference.
    pub reference_seconds: f64,
    /// Why there is no prediction or no interval.
    pub reason: Option<String>,
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

/// Predicts all programs of `subset` from the measured `ratios` of its points. Only those of representatives and checks are used, so
/// that a target where all points were measured gives the same.
#[must_use]
pub fn predict(subset: &Subset, ratios: &[Option<Ratio>], disagree: f64) -> Prediction {
    let mut known: Vec<Option<Known>> = vec![None; subset.points.len()];
    let mut refused = Vec::new();
    let mut squares: Vec<f64> = Vec::new();
    let mut unchecked = Vec::new();
    let measured = |point: &usize| ratios.get(*point).copied().flatten();
    for (number, cluster) in subset.clusters.iter().enumerate() {
        let checks: Vec<(usize, Ratio)> = cluster
            .checks
            .iter()
            .filter_map(|c| Some((*c, measured(c)?)))
            .collect();
        let own = measured(&cluster.representative);
        let representative = own.map(|r| (cluster.representative, r));
        for (point, ratio) in representative.iter().chain(&checks) {
            known[*point] = Some(Known::Own(*ratio));
        }
        // A representative that cannot be replayed there has a check in its place.
        let mut others = checks.iter();
        let lead = representative.or_else(|| others.next().copied());
        let reason = match lead {
            None => Some("none of its measured members has a time there".to_owned()),
            Some((lead, ratio)) => {
                let mut found = None;
                let mut own = Vec::new();
                for (check, other) in others {
                    let distance = (other.value / ratio.value).ln();
                    let noise = ratio.noise + other.noise;
                    own.push(distance * distance - noise);
                    if distance.abs() > disagree.ln() + 2.0 * noise.sqrt() {
                        found.get_or_insert_with(|| {
                            format!(
                                "{} takes {:.2} and {} {:.2} times as long there as on the reference",
                                subset.point_name(lead),
                                ratio.value,
                                subset.point_name(*check),
                                other.value
                            )
                        });
                    }
                }
                if found.is_none() {
                    // What a refused cluster spreads says nothing of those that are used.
                    squares.extend(&own);
                    let inherits = cluster.members.iter().any(|p| known[*p].is_none());
                    if own.is_empty() && inherits {
                        unchecked.push(subset.point_name(cluster.representative));
                    }
                    for point in &cluster.members {
                        known[*point].get_or_insert(Known::Cluster(number, ratio));
                    }
                }
                found
            }
        };
        let left = cluster.members.iter().filter(|p| known[**p].is_none());
        let seconds: f64 = left.map(|p| subset.points[*p].seconds).sum();
        if let Some(reason) = reason.filter(|_| seconds > 0.0) {
            refused.push(Refused {
                cluster: number,
                representative: subset.point_name(cluster.representative),
                seconds,
                reason,
            });
        }
    }
    refused.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let checks = squares.len();
    let mean = || squares.iter().sum::<f64>() / checks as f64;
    let variance = (checks > 0).then(|| mean().max(0.0));
    let programs = (0..subset.programs.len())
        .map(|program| of_program(subset, program, &known, variance, checks))
        .collect();
    Prediction {
        programs,
        refused,
        unchecked,
        ratios: known
            .iter()
            .map(|k| {
                k.map(|k| match k {
                    Known::Own(ratio) => (ratio.value, true),
                    Known::Cluster(_, ratio) => (ratio.value, false),
                })
            })
            .collect(),
        deviation: variance.map(f64::sqrt),
        checks,
    }
}

fn of_program(
    subset: &Subset,
    program: usize,
    known: &[Option<Known>],
    variance: Option<f64>,
    checks: usize,
) -> Predicted {
    let of = &subset.programs[program];
    let points = subset.points.iter().zip(known);
    let own: Vec<(f64, Known)> = points
        .filter(|(point, _)| point.program == program)
        .filter_map(|(point, known)| Some((point.seconds, (*known)?)))
        .collect();
    let value = |known: &Known| match known {
        Known::Own(ratio) | Known::Cluster(_, ratio) => ratio.value,
    };
    let covered = own.iter().fold(0.0, |sum, (seconds, _)| sum + seconds);
    let classes: Vec<Replayed> = own
        .iter()
        .map(|(seconds, known)| Replayed {
            total: *seconds,
            reference: 1.0,
            target: value(known),
        })
        .collect();
    let there = sum_up(&classes).unwrap_or(f64::NAN);
    let share = covered / of.seconds;
    let mut predicted = Predicted {
        name: of.name.clone(),
        predicted_seconds: None,
        low: None,
        high: None,
        covered: share.min(1.0),
        reference_seconds: of.seconds,
        reason: None,
    };
    if share < LEAST_COVERED {
        predicted.reason = Some(format!(
            "{:.0} % of its time is covered, less than {:.0} %",
            100.0 * share,
            100.0 * LEAST_COVERED
        ));
        return predicted;
    }
    let seconds = of.seconds * there / covered;
    predicted.predicted_seconds = Some(seconds);
    let rest = (of.seconds - covered).max(0.0) * there / covered;
    // The rest of the program is one more point with the covered speed-up, as far from it as the covered points are.
    let mean = there / covered;
    let apart = own
        .iter()
        .map(|(s, k)| s * (value(k) / mean).ln().powi(2))
        .sum::<f64>()
        / covered;
    let inherits = own.iter().any(|(_, k)| matches!(k, Known::Cluster(..)));
    let of_rest = match (variance, own.len()) {
        _ if rest <= 1e-3 * there => Some(0.0),
        (Some(variance), _) => Some(apart.max(variance)),
        (None, 2..) => Some(apart),
        (None, _) => None,
    };
    let variance = variance.or((!inherits).then_some(0.0));
    let (Some(variance), Some(of_rest)) = (variance, of_rest) else {
        predicted.reason = Some(
            "no interval: without a measured check the distance of members from representatives is unknown (--checks)"
                .to_owned(),
        );
        return predicted;
    };
    // In units of covered seconds on the target: noise of a representative is common to its members, their distance from it is not.
    let mut squares = 0.0;
    let mut common = vec![(0.0, 0.0); subset.clusters.len()];
    for (seconds, known) in &own {
        let there = seconds * value(known);
        match known {
            Known::Own(ratio) => squares += there * there * ratio.noise,
            Known::Cluster(number, ratio) => {
                squares += there * there * variance;
                common[*number].0 += there;
                common[*number].1 = ratio.noise;
            }
        }
    }
    squares += common
        .iter()
        .map(|(sum, noise)| sum * sum * noise)
        .sum::<f64>();
    squares += rest * rest * of_rest;
    let freedom = match (inherits, of_rest > 0.0) {
        (true, _) => checks,
        (false, true) => checks.max(own.len() - 1),
        // The noise is that of the points' rounds.
        (false, false) => own.len(),
    };
    let (low, high) = around(seconds, squares.sqrt() / (there + rest), freedom);
    (predicted.low, predicted.high) = (Some(low), Some(high));
    predicted
}

#[cfg(test)]
mod tests;
