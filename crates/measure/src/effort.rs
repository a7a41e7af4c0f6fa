//! How long codes are timed in turns, and what a check may take.

use cere_timing::stats::Gain;
use std::time::Instant;

/// How long a region is timed.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Rounds at least.
    pub least: u32,
    /// Rounds at most.
    pub most: u32,
    /// Half the interval's width over the ratio that is narrow enough.
    pub precision: f64,
    /// Seconds after which no further round is begun.
    pub seconds: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            least: 3,
            most: 15,
            precision: 0.005,
            seconds: 0.5,
        }
    }
}

impl Effort {
    /// Whether a ratio is known well enough.
    pub fn is_narrow(&self, found: Option<Gain>) -> bool {
        found.is_some_and(|g| g.level >= 0.95 && (g.high - g.low) / 2.0 <= self.precision * g.ratio)
    }

    /// Whether the time since `began` is over.
    pub fn is_over(&self, began: Instant) -> bool {
        began.elapsed().as_secs_f64() >= self.seconds
    }
}

/// How much a check measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extent {
    /// So many rounds of replays, each between two runs of the program; 0: one round, compared with the profile's times.
    Rounds(u32),
    /// What fits into so many seconds, but one round of replays and a run of the program at least.
    Seconds(f64),
}

/// Seconds that a study may take beside the build, of a program that runs for `run` seconds: six runs, but 5 s at least; half of that
/// if it is to be `quick`.
pub fn study_seconds(run: f64, quick: bool) -> f64 {
    let whole = (6.0 * run).max(5.0);
    if quick { whole / 2.0 } else { whole }
}

/// Rounds that fit into a check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fitting {
    /// Rounds of replays.
    pub rounds: u32,
    /// Runs of the program: one more than rounds, or as many if the profile's run stands for the first, if it is new.
    pub runs: u32,
    /// Seconds that each codelet may be repeated in a round.
    pub each: f64,
}

/// Seconds that a replay takes beside its repetitions: start, restoring, comparing.
const BESIDE: f64 = 0.03;
/// Seconds of repetitions in a round that are worth a round.
const WORTH: f64 = 0.02;

impl Fitting {
    /// What fits into `seconds` with a run of `run` seconds and this number of codelets: rounds up to `most`, each codelet repeated for
    /// `longest` seconds in a round at most.
    pub fn into(seconds: f64, run: f64, codelets: usize, (most, longest): (u32, f64)) -> Self {
        let count = codelets.max(1) as f64;
        let round = count * (BESIDE + WORTH);
        let whole = ((seconds - run) / (run + round))
            .floor()
            .clamp(0.0, f64::from(most.max(1)));
        let (rounds, runs) = match whole {
            ..1.0 => (1.0, 1.0),
            _ => (whole, whole + 1.0),
        };
        let each = (seconds - runs * run) / (rounds * count) - BESIDE;
        Self {
            rounds: rounds as u32,
            runs: runs as u32,
            each: each.clamp(WORTH, longest),
        }
    }

    /// Whether more than the least is done.
    pub fn is_ample(self) -> bool {
        self.each > WORTH
    }
}

#[cfg(test)]
mod tests {
    use super::Fitting;

    #[test]
    fn rounds_fit_into_their_seconds() {
        let most = (9, 0.4);
        let of = |seconds, run, codelets| {
            let found = Fitting::into(seconds, run, codelets, most);
            (found.rounds, found.runs)
        };
        // A run and a round of 20 codelets take a second each.
        assert_eq!(of(0.5, 1.0, 20), (1, 1));
        assert_eq!(of(2.0, 1.0, 20), (1, 1));
        assert_eq!(of(3.0, 1.0, 20), (1, 2));
        assert_eq!(of(7.5, 1.0, 20), (3, 4));
        assert_eq!(of(1e9, 1.0, 20), (9, 10));
        assert_eq!(of(-3.0, 1.0, 20), (1, 1));
        assert_eq!(of(1.0, 1.0, 0), (1, 1));
        for seconds in [2.0, 2.9, 3.0, 5.5, 20.0] {
            let found = Fitting::into(seconds, 1.0, 20, most);
            let takes =
                f64::from(found.runs) + f64::from(found.rounds) * 20.0 * (found.each + 0.03);
            assert!(takes <= seconds + 1e-9, "{seconds}: {found:?}");
        }
        assert_eq!(Fitting::into(1e9, 1.0, 20, most).each, 0.4);
    }
}
