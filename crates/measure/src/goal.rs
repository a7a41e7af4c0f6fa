//! What variants are compared by.

use crate::fast::fast_seconds;
use cere_replay::Replay;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What a variant is to take less of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Time.
    #[default]
    Time,
    /// Energy: that of whole packages, with what they take while idle.
    Energy,
    /// Energy times time.
    Edp,
}

impl Goal {
    const ALL: [Self; 3] = [Self::Time, Self::Energy, Self::Edp];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Energy => "energy",
            Self::Edp => "edp",
        }
    }

    /// Rounds of energy in a replay, of which a comparison has many.
    pub fn rounds(self) -> Option<u32> {
        (self != Self::Time).then_some(1)
    }

    /// What an invocation takes: seconds that a fifth of the repetitions are below, joules, or joules times seconds. 0 if it is too
    /// little to be measured.
    pub fn cost(self, replay: &Replay) -> f64 {
        let energy = replay.energy.as_ref();
        match self {
            Self::Time => fast_seconds(replay),
            Self::Energy => energy.map_or(0.0, |energy| energy.joules),
            Self::Edp => energy.map_or(0.0, cere_replay::Energy::joule_seconds),
        }
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|goal| goal.name() == text);
        found.ok_or_else(|| format!("{text} is no goal: time, energy or edp (energy times time)"))
    }
}
