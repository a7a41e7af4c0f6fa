//! The energy of an invocation, from the rounds in which a replay measured it.

use cere_format::replay::{CONFIDENCE, EnergyCounter, EnergyPlan, EnergyRound};
use cere_timing::energy::{Counters, ENOUGH, STEP};
use cere_timing::stats::{interval, median};
use serde::{Deserialize, Serialize};
use std::os::fd::AsRawFd;

/// Rounds unless others are asked for: the fewest that give an interval of 95 %, and one that may lie far off.
pub const ROUNDS: u32 = 7;

/// What an invocation takes of energy: of whole packages and their memory, whatever else runs there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Median joules of the rounds.
    pub joules: f64,
    /// Ends of the median's confidence interval, and the probability that it holds the median.
    pub low: f64,
    /// See above.
    pub high: f64,
    /// See above.
    pub confidence: f64,
    /// Median seconds of an invocation in these rounds.
    pub seconds: f64,
    /// Joules of an invocation in each round.
    pub rounds: Vec<f64>,
    /// Seconds that all rounds took, with preparing.
    pub took: f64,
    /// The counters that were added up.
    pub counters: String,
}

impl Energy {
    /// Mean power in watts while the region runs.
    pub fn watts(&self) -> f64 {
        self.joules / self.seconds
    }

    /// Energy-delay product of an invocation in joules times seconds.
    pub fn joule_seconds(&self) -> f64 {
        self.joules * self.seconds
    }
}

/// How a replay measures with `counters`, which its executable inherits, in so many rounds.
pub fn plan(counters: &Counters, rounds: u32) -> EnergyPlan {
    let counter = |counter: &cere_timing::energy::Counter| EnergyCounter {
        name: counter.name.clone(),
        descriptor: counter.file().as_raw_fd(),
        range: counter.range,
    };
    EnergyPlan {
        counters: counters.all().iter().map(counter).collect(),
        rounds,
        seconds: ENOUGH,
    }
}

fn took(round: &EnergyRound) -> f64 {
    round.seconds + round.preparing.map_or(0.0, |preparing| preparing.1)
}

/// The energy of an invocation, and a sentence if it is not known or not well known.
pub fn energy(rounds: &[EnergyRound], counters: &str) -> (Option<Energy>, Option<String>) {
    let mut sorted: Vec<f64> = rounds.iter().map(EnergyRound::joules_each).collect();
    sorted.sort_by(f64::total_cmp);
    let seconds: Vec<f64> = rounds.iter().map(EnergyRound::seconds_each).collect();
    let (Some(joules), Some(seconds)) = (median(&sorted), median(&seconds)) else {
        return (None, None);
    };
    if joules <= 0.0 || seconds <= 0.0 || !(joules / seconds).is_finite() {
        let why = "its energy is not known: preparing a repetition takes so much more that nothing is left for the region";
        return (None, Some(why.to_owned()));
    }
    let (low, high, ranks) = match interval(&sorted, CONFIDENCE) {
        Some((low, high, ranks)) => (low, high, ranks.level),
        None => (joules, joules, 0.0),
    };
    let energy = Energy {
        joules,
        low,
        high,
        confidence: ranks,
        seconds,
        rounds: rounds.iter().map(EnergyRound::joules_each).collect(),
        took: rounds.iter().map(took).sum(),
        counters: counters.to_owned(),
    };
    let inside: Vec<f64> = rounds.iter().map(|round| round.inside).collect();
    let inside = median(&inside).unwrap_or(0.0);
    // As asked for, but for the last invocation.
    let note = (inside < 0.9 * ENOUGH).then(|| {
        format!(
            "preparing a repetition takes much longer than the region: a round has {:.0} ms of it, of which the steps of the energy \
             counters are {:.0} %",
            inside * 1e3,
            STEP / inside * 100.0
        )
    });
    (Some(energy), note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(joules: f64, preparing: Option<(f64, f64)>) -> EnergyRound {
        EnergyRound {
            invocations: 10,
            joules,
            seconds: 0.3,
            inside: 0.1,
            preparing,
        }
    }

    #[test]
    fn preparing_takes_its_own_power() {
        // 0.2 s at 40 W are preparing: 8 J.
        let rounds = [9.0, 10.0, 11.0].map(|joules| round(joules, Some((4.0, 0.1))));
        let (energy, note) = energy(&rounds, "package-0");
        let energy = energy.expect("known");
        assert_eq!(note, None);
        assert!((energy.joules - 0.2).abs() < 1e-9, "{energy:?}");
        assert!((energy.watts() - 20.0).abs() < 1e-6, "{energy:?}");
        assert!((energy.joule_seconds() - 0.002).abs() < 1e-9, "{energy:?}");
        // Three rounds give no more than their ends.
        assert!((energy.low - 0.1).abs() < 1e-9 && (energy.high - 0.3).abs() < 1e-9);
        assert!(energy.confidence < 0.95);
        assert!((energy.took - 1.2).abs() < 1e-9, "{energy:?}");
    }

    #[test]
    fn what_is_lost_in_preparing_has_no_energy() {
        let (found, note) = energy(&[round(7.0, Some((4.0, 0.1)))], "package-0");
        assert_eq!(found, None);
        assert!(note.expect("why").contains("not known"));
        let short = EnergyRound {
            inside: 0.01,
            ..round(10.0, Some((1.0, 0.1)))
        };
        let (found, note) = energy(&[short], "package-0");
        assert!(found.is_some() && note.expect("why").contains("are 10 %"));
        assert_eq!(energy(&[], "package-0"), (None, None));
    }
}
