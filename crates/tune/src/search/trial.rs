//! Proposals with their outcomes, and which is the best.

use super::point::Point;
use cere_toolchain::Variant;

/// Relative difference below which ratios count as equal: of such variants the shortest is the best.
const TOLERANCE: f64 = 0.005;

/// A proposal and its outcome.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    pub(super) point: Point,
    pub(super) variant: Variant,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    Awaited,
    Failed,
    Ratio(f64),
}

impl Trial {
    pub(super) fn ratio(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Ratio(ratio) => Some(ratio),
            Outcome::Awaited | Outcome::Failed => None,
        }
    }
}

/// The best of the trials that `which` accepts, by the rule of [`Search::best`](super::Search::best).
pub(super) fn best(trials: &[Trial], which: impl Fn(&Trial) -> bool) -> Option<&Trial> {
    let told = || {
        let chosen = trials.iter().filter(|t| which(t));
        chosen.filter_map(|t| t.ratio().map(|r| (t, r)))
    };
    let least = told().map(|(_, r)| r).min_by(f64::total_cmp)?;
    let near = told().filter(|(_, r)| *r <= least * (1.0 + TOLERANCE));
    let length = |v: &Variant| (v.passes.as_ref().map_or(0, String::len), v.flags.len());
    let shortest = near.min_by(|(a, x), (b, y)| {
        let lengths = length(&a.variant).cmp(&length(&b.variant));
        lengths.then(x.total_cmp(y))
    });
    shortest.map(|(trial, _)| trial)
}
