//! What is left of the time and of the tries.

use anyhow::Result;
use cere_catalogue::bail;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What an agent may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Seconds of compiles and replays in total.
    pub budget: f64,
    /// Seconds of one call.
    pub seconds: f64,
    /// Calls that try something.
    pub tries: u32,
}

/// What a call costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Nothing: it reads the store.
    Nothing,
    /// Time.
    Time,
    /// Time, and one of the tries.
    Try,
}

/// Seconds of a call that costs nothing.
const READING: f64 = 60.0;

/// What is left.
pub struct Budget {
    limits: Limits,
    spent: f64,
    tried: u32,
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            spent: 0.0,
            tried: 0,
        }
    }

    fn seconds(&self) -> f64 {
        (self.limits.budget - self.spent).max(0.0)
    }

    /// For the answer.
    pub fn left(&self) -> Value {
        json!({ "seconds": self.seconds(), "tries": self.limits.tries - self.tried })
    }

    /// Does `work`, which gets its limit, if there is enough left for it.
    pub fn spend<T>(&mut self, cost: Cost, work: impl FnOnce(Duration) -> Result<T>) -> Result<T> {
        if cost == Cost::Nothing {
            return work(Duration::from_secs_f64(READING));
        }
        if self.seconds() <= 0.0 {
            bail!(
                E5306,
                "the budget of {} s of compiles and replays is used up: start the server with a larger --budget",
                self.limits.budget
            );
        }
        if cost == Cost::Try {
            if self.tried >= self.limits.tries {
                bail!(
                    E5306,
                    "all {} tries are used up: start the server with more --tries",
                    self.limits.tries
                );
            }
            self.tried += 1;
        }
        let limit = self.limits.seconds.min(self.seconds());
        let began = Instant::now();
        let done = work(Duration::try_from_secs_f64(limit).unwrap_or(Duration::MAX));
        self.spent += began.elapsed().as_secs_f64();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_it_is_refused() {
        let mut budget = Budget::new(Limits {
            budget: 0.05,
            seconds: 9.0,
            tries: 2,
        });
        let wait = |limit: Duration| {
            assert!(limit <= Duration::from_millis(50));
            std::thread::sleep(Duration::from_millis(20));
            Ok(())
        };
        budget.spend(Cost::Try, wait).expect("enough is left");
        budget.spend(Cost::Try, |_| Ok(())).expect("enough is left");
        let refused = budget.spend(Cost::Try, |_| Ok(())).expect_err("no tries");
        assert!(refused.to_string().contains("all 2 tries"), "{refused}");
        for _ in 0..2 {
            budget.spend(Cost::Time, wait).expect("enough is left");
        }
        let refused = budget.spend(Cost::Time, wait).expect_err("no time");
        assert!(
            refused.to_string().contains("budget of 0.05 s"),
            "{refused}"
        );
        assert_eq!(budget.left(), json!({ "seconds": 0.0, "tries": 0 }));
        budget.spend(Cost::Nothing, |_| Ok(())).expect("it is free");
    }
}
