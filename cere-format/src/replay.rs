//! Between the replay generator and the runtime inside the replay executable.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Version of the replay plan and outcome.
pub const REPLAY_VERSION: u32 = 1;

/// Environment variable that names the [`ReplayPlan`] file for a replay executable.
pub const ENV_PLAN: &str = "CERE_REPLAY_PLAN";

/// What a replay executable is to do. The page files lie unpacked beside the plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplayPlan {
    /// [`REPLAY_VERSION`].
    pub version: u32,
    /// Directory of the unpacked package: manifest, pages, thread-local blocks.
    pub package: PathBuf,
    /// Where the outcome goes (JSON, [`ReplayOutcome`]).
    pub outcome: PathBuf,
    /// Timed repetitions, at least 1.
    pub repetitions: u32,
    /// Whether to compare the exit state.
    pub compare: bool,
}

/// What a replay executable reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplayOutcome {
    /// [`REPLAY_VERSION`].
    pub version: u32,
    /// Cycles of each timed repetition, the clock's own cost subtracted.
    pub cycles: Vec<u64>,
    /// Frequency of the time stamp counter in Hz.
    pub tsc_hz: f64,
    /// Comparison of the exit state after the first repetition; none if it was not asked for.
    pub comparison: Option<Comparison>,
    /// Whether every later repetition ended in the same state as the first.
    pub repeatable: bool,
    /// If not: a place that differed, as in [`Difference::place`].
    #[serde(default)]
    pub varied: Option<String>,
}

/// Exit state in vitro against exit state in vivo.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Bytes compared.
    pub compared: u64,
    /// Bytes left out, by reason.
    pub masked: Vec<(String, u64)>,
    /// 8-byte words that differ.
    pub different_words: u64,
    /// Of those, words that read as floating point (double or pair of floats) on both sides, finite and within
    /// `largest_relative_error`.
    pub floating_words: u64,
    /// Largest relative error among `floating_words`.
    pub largest_relative_error: f64,
    /// The first words that differ.
    pub first: Vec<Difference>,
    /// Whether the region ended the way it did in vivo (returned or unwound).
    pub same_end: bool,
}

/// One word that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Its address.
    pub address: u64,
    /// The variable or mapping that it belongs to, for people: `grid+16`, `[heap]`, `[stack]`, `return value`.
    pub place: String,
    /// The value in vivo.
    pub in_vivo: u64,
    /// The value in vitro.
    pub in_vitro: u64,
}

/// The verdict on a replay's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every compared byte is the same.
    Exact,
    /// Only floating-point words differ, within the tolerance.
    Tolerance,
    /// The result is not the original's.
    Different,
    /// Nothing was compared.
    Unchecked,
}
