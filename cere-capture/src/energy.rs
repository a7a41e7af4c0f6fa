//! The energy of whole runs of a program.

use anyhow::Result;
use cere_timing::energy::{Counters, EnergyError};
use std::cell::RefCell;
use std::time::Instant;

/// Counters around runs, and what each run took.
pub struct Metered {
    counters: Counters,
    runs: RefCell<Vec<RunEnergy>>,
}

/// What a run took: whole packages and their memory, with whatever else ran there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunEnergy {
    /// Joules.
    pub joules: f64,
    /// Seconds.
    pub seconds: f64,
}

impl Metered {
    /// By these counters.
    pub fn new(counters: Counters) -> Self {
        Self {
            counters,
            runs: RefCell::default(),
        }
    }

    /// Counts while `run` runs the program.
    ///
    /// # Errors
    /// Those of the run; a counter cannot be read, or none moves.
    pub fn around<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let (from, began) = (self.counters.read()?, Instant::now());
        let ended = run()?;
        let seconds = began.elapsed().as_secs_f64();
        let joules = self.counters.since(&from, seconds)?;
        self.runs.borrow_mut().push(RunEnergy { joules, seconds });
        Ok(ended)
    }

    /// All runs so far.
    ///
    /// # Errors
    /// One was too short for the counters, which step about once a millisecond.
    pub fn runs(&self) -> Result<Vec<RunEnergy>, EnergyError> {
        let runs = self.runs.borrow().clone();
        let still = runs.iter().find(|run| run.joules <= 0.0);
        match still {
            Some(run) => Err(self.counters.still(run.seconds)),
            None => Ok(runs),
        }
    }

    /// The names of the counters.
    pub fn names(&self) -> String {
        self.counters.names()
    }
}
