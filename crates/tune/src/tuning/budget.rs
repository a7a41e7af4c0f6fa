//! The budget of a search.

use cere_measure::Goal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Evaluations or time, for all regions together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// Variants to evaluate.
    Evaluations(u64),
    /// Wall time.
    Time(Duration),
}

/// Why a text is no budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// It is neither a number nor a time.
    #[error("{0:?} is no budget: give a number of evaluations (400), or a time (90s, 30m, 2h)")]
    Unknown(String),
    /// No evaluations.
    #[error("a budget of nothing finds nothing: give at least one evaluation")]
    NoEvaluation,
    /// No time.
    #[error("a budget of nothing finds nothing: give it some time")]
    NoTime,
}

impl Budget {
    /// Until when what is not needed may be done, after a start: none for a budget of evaluations.
    pub fn end(self, start: Instant) -> Option<Instant> {
        match self {
            Self::Evaluations(_) => None,
            Self::Time(most) => start.checked_add(most),
        }
    }
}

impl std::str::FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let bad = || BudgetError::Unknown(text.to_owned());
        let scale = match text.chars().last() {
            Some('s') => 1.0,
            Some('m') => 60.0,
            Some('h') => 3600.0,
            _ => {
                return match text.parse().map_err(|_| bad())? {
                    0 => Err(BudgetError::NoEvaluation),
                    count => Ok(Self::Evaluations(count)),
                };
            }
        };
        let number: f64 = text[..text.len() - 1].parse().map_err(|_| bad())?;
        match number * scale {
            seconds if seconds > 0.0 && seconds <= 1e8 => {
                Ok(Self::Time(Duration::from_secs_f64(seconds)))
            }
            0.0 => Err(BudgetError::NoTime),
            _ => Err(bad()),
        }
    }
}

/// The part of a budget of time that searches get: the rest is for measuring the best variants again.
const SEARCHING: f64 = 0.7;

/// The part that is left for saying what the winners' flags do.
const EXPLAINING: f64 = 0.1;

/// Time for measuring the best variants of a region again, where the budget is one of evaluations, at least.
const AGAIN: Duration = Duration::from_secs(8);
/// The same where each of its replays measures energy, which takes 0.2 s more.
const AGAIN_BY_ENERGY: Duration = Duration::from_secs(32);

/// The remaining budget.
#[derive(Debug)]
pub struct Left {
    budget: Budget,
    start: Instant,
    proposed: u64,
    /// [`AGAIN`], or [`AGAIN_BY_ENERGY`].
    least: Duration,
    /// How long searching took, once it has ended.
    searched: OnceLock<Duration>,
}

impl Left {
    /// The whole budget, less evaluations that were made before; time counts since `start`.
    pub fn new(budget: Budget, start: Instant, before: u64) -> Self {
        Self {
            budget,
            start,
            proposed: before,
            least: AGAIN,
            searched: OnceLock::new(),
        }
    }

    /// The same for evaluations by this goal.
    pub fn by(mut self, goal: Goal) -> Self {
        if goal != Goal::Time {
            self.least = AGAIN_BY_ENERGY;
        }
        self
    }

    /// Time for measuring the best variants of a region again, which has this part of what is left for all of them. A budget of
    /// evaluations gives it as long as searching took, but 8 s for each region, or 32 s by energy.
    pub fn again(&self, part: f64) -> Duration {
        match self.budget {
            Budget::Evaluations(_) => {
                let spent = self.start.elapsed();
                let searched = *self.searched.get_or_init(|| spent);
                let left = (2 * searched).saturating_sub(spent);
                left.mul_f64(part).max(self.least)
            }
            Budget::Time(most) => {
                let end = most.mul_f64(1.0 - EXPLAINING);
                end.saturating_sub(self.start.elapsed()).mul_f64(part)
            }
        }
    }

    /// Takes one evaluation; false if the budget is used up.
    pub fn take(&mut self) -> bool {
        let there = match self.budget {
            Budget::Evaluations(most) => self.proposed < most,
            Budget::Time(most) => self.start.elapsed() < most.mul_f64(SEARCHING),
        };
        self.proposed += u64::from(there);
        there
    }

    /// Returns an evaluation that was not made.
    pub fn put_back(&mut self) {
        self.proposed -= 1;
    }

    /// Seconds until it is used up at the speed so far, with `made` evaluations of this run finished.
    pub fn seconds(&self, made: u64) -> Option<f64> {
        let elapsed = self.start.elapsed().as_secs_f64();
        match self.budget {
            Budget::Time(most) => Some((SEARCHING * most.as_secs_f64() - elapsed).max(0.0)),
            Budget::Evaluations(_) if made == 0 => None,
            Budget::Evaluations(most) => {
                Some(elapsed / made as f64 * most.saturating_sub(self.proposed) as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets() {
        let of = |text: &str| text.parse::<Budget>();
        assert_eq!(of("400"), Ok(Budget::Evaluations(400)));
        assert_eq!(of("1.5m"), Ok(Budget::Time(Duration::from_secs(90))));
        for bad in ["0", "0s", "-3", "x", "", "5d", "-1m", "nanm", "m"] {
            assert!(of(bad).is_err(), "{bad}");
        }
        let long = Left::new(Budget::Time(Duration::from_secs(900)), Instant::now(), 0);
        let half = long.again(0.5).as_secs_f64();
        assert!((404.0..=405.0).contains(&half), "{half}");
        let mut left = Left::new(Budget::Evaluations(3), Instant::now(), 1);
        left.start -= Duration::from_secs(60);
        let again = left.again(0.5).as_secs_f64();
        assert!((30.0..31.0).contains(&again), "{again}");
        assert_eq!(left.again(0.01), AGAIN);
        // What one region took the others no longer have.
        left.start -= Duration::from_secs(30);
        let again = left.again(1.0).as_secs_f64();
        assert!((29.0..=30.0).contains(&again), "{again}");
        left = left.by(Goal::Edp);
        assert_eq!(left.again(0.01), AGAIN_BY_ENERGY);
        assert!(left.take() && left.take() && !left.take());
    }

    #[test]
    fn what_is_left() {
        let mut left = Left::new(Budget::Evaluations(10), Instant::now(), 4);
        assert!(left.take());
        assert_eq!(left.seconds(0), None);
        left.start -= Duration::from_secs(30);
        // Three were made in 30 seconds, and five are left.
        let seconds = left.seconds(3).unwrap();
        assert!((50.0..51.0).contains(&seconds), "{seconds}");
        left.put_back();
        let seconds = left.seconds(3).unwrap();
        assert!((60.0..61.0).contains(&seconds), "{seconds}");
        let mut left = Left::new(Budget::Time(Duration::from_secs(60)), Instant::now(), 1000);
        assert!(left.take());
        left.start -= Duration::from_secs(35);
        let seconds = left.seconds(0).unwrap();
        assert!((6.0..=7.0).contains(&seconds), "{seconds}");
        left.start -= Duration::from_secs(20);
        assert!(!left.take());
        // The rest is for measuring again, but for the last six seconds.
        left.start += Duration::from_secs(5);
        let rest = left.again(1.0).as_secs_f64();
        assert!((3.0..=4.0).contains(&rest), "{rest}");
        left.start -= Duration::from_secs(5);
        assert_eq!(left.seconds(7), Some(0.0));
    }
}
