//! What the search of a region has found.

use super::advise::Advice;
use super::spent::Spent;
use crate::Variant;
use cere_timing::stats::Gain;
use serde::{Deserialize, Serialize};

/// The outcome of the search of one region.
#[derive(Default)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its share of the run's time, 0 to 1.
    pub share: f64,
    /// Evaluations, including earlier searches.
    pub evaluations: u64,
    /// Evaluations of earlier searches.
    pub earlier: u64,
    /// Evaluations without timing because another variant has the same machine code.
    pub same_code: u64,
    /// Variants that failed.
    pub failed: Vec<Failure>,
    /// Why the search ended before its budget.
    pub ended: Option<&'static str>,
    /// Variants with their time over the time as built, the fastest first.
    pub ranked: Vec<(f64, Variant)>,
    /// Where the time went.
    pub spent: Spent,
    /// The variant that was confirmed to be faster, if any.
    pub winner: Option<Winner>,
    /// A number of threads that is faster than that of the capture, with the gain.
    pub threads: Option<(u32, Gain)>,
    /// What the source may say instead of the winner's flags, if there is a winner.
    pub advice: Option<Advice>,
}

impl Found {
    /// How many times faster the region is with the winner and its number of threads.
    pub fn gain(&self) -> f64 {
        let flags = self.winner.as_ref().map_or(1.0, |w| w.gain.ratio);
        let threads = self.threads.as_ref().map_or(1.0, |t| t.1.ratio);
        1.0 / (flags * threads)
    }
}

/// A variant that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The variant.
    pub variant: Variant,
    /// The reason.
    pub reason: String,
    /// Whether the failure was that of another variant with the same machine code.
    pub same: bool,
}

/// A confirmed variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    /// The variant.
    pub variant: Variant,
    /// Its time over that of the code as built, with the 95 % interval.
    pub gain: Gain,
    /// The variant as the search found it, if that had more flags.
    #[serde(default)]
    pub searched: Option<Variant>,
    /// What each of its choices does, as far as that is known.
    #[serde(default)]
    pub effects: Vec<Effect>,
}

impl Winner {
    /// Number of its choices, the pipeline among them, of which [`Winner::effects`] says nothing.
    pub fn unexplained(&self) -> usize {
        let all = self.variant.choices().len() + usize::from(self.variant.passes.is_some());
        all.saturating_sub(self.effects.len())
    }
}

/// What a choice of a winner does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The choice: flags, or "the pipeline".
    pub choice: String,
    /// What it changes, for people.
    pub says: String,
}
