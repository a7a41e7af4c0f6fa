//! Where the time of a search went.

use cere_measure::Timed;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Where the time of a search went, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Compiling and linking, all builders together.
    pub compiling: f64,
    /// Waiting for builds: for the next variant's, or for others to end before something is timed.
    pub waiting: f64,
    /// Starting replays, including their first runs, whose results are compared.
    pub starting: f64,
    /// Putting the captured state back.
    pub restoring: f64,
    /// Warming up.
    pub warming: f64,
    /// In timed repetitions.
    pub timed: f64,
    /// Measuring the best variants again, builds and replays.
    #[serde(default)]
    pub confirming: f64,
}

impl Spent {
    /// Adds what replays took.
    pub fn add_replays(&mut self, timed: &Timed) {
        self.timed += timed.timed;
        let preparation = timed.preparation;
        self.restoring += preparation.restoring;
        self.warming += preparation.warming;
        let rest = timed.wall - timed.timed - preparation.restoring - preparation.warming;
        self.starting += rest.max(0.0);
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.compiling += other.compiling;
        self.waiting += other.waiting;
        self.starting += other.starting;
        self.restoring += other.restoring;
        self.warming += other.warming;
        self.timed += other.timed;
        self.confirming += other.confirming;
    }
}
