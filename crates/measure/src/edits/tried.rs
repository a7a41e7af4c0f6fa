//! What comes of a variant.

use cere_format::replay::Verdict;
use cere_replay::wrong::Wrong;
use cere_replay::{ReplayError, SameCode};
use cere_timing::stats::Gain;

/// What came of a variant of a region.
#[derive(Debug, Clone)]
pub struct Tried {
    /// The variant's name.
    pub variant: String,
    /// The worst verdict over the codelets; none if one of them could not be replayed.
    pub verdict: Option<Verdict>,
    /// What the verdict rests on, or why there is none.
    pub reason: String,
    /// Time of the change over the time as captured; none if it is too short for the clock, or if the verdict is bad.
    pub gain: Option<Gain>,
    /// Time of the change over that of the variant that the others are compared with, if there is one.
    pub over_baseline: Option<Gain>,
    /// Whether all machine code is the captured one.
    pub same_code: SameCode,
    /// What people should know.
    pub notes: Vec<String>,
    /// Which store made the result wrong, if that is known.
    pub wrong: Option<Wrong>,
}

/// An error, for people.
pub fn explained(error: ReplayError) -> String {
    cere_system::console::print::error(&error.into())
}

impl Tried {
    /// Whether the result is the original's, but for rounding.
    pub fn is_right(&self) -> bool {
        matches!(self.verdict, Some(Verdict::Exact | Verdict::Tolerance))
    }

    /// Of a region whose captured code cannot be run in this way.
    pub fn failed(variant: &str, error: &anyhow::Error) -> Self {
        Self {
            reason: format!(
                "the code as captured cannot be tried, which is no fault of the edit: {}",
                cere_system::console::print::error(error)
            ),
            ..Self::open(variant)
        }
    }

    /// Of which nothing is known yet.
    pub fn open(variant: &str) -> Self {
        Self {
            variant: variant.to_owned(),
            verdict: None,
            reason: String::new(),
            gain: None,
            over_baseline: None,
            same_code: SameCode::Unknown,
            notes: Vec::new(),
            wrong: None,
        }
    }
}
