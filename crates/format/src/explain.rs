//! Why a region takes its time: one sentence, its evidence, and what would be gained without the cause. Written by `cere explain`,
//! read by the report.

use serde::{Deserialize, Serialize};

/// Version of the document.
pub const EXPLANATION_VERSION: u32 = 1;

/// Why a region takes its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// [`EXPLANATION_VERSION`].
    pub version: u32,
    /// The region's name.
    pub region: String,
    /// Its unit.
    pub unit: String,
    /// Its index in the unit.
    pub index: u32,
    /// The codelet that was looked at.
    pub codelet: String,
    /// SHA-256 of the codelet's file, in hexadecimal.
    pub sha256: String,
    /// Flags of the replay; empty: those of the build.
    pub flags: String,
    /// The processor.
    pub cpu: String,
    /// Seconds of one invocation in the replay.
    pub seconds: f64,
    /// What takes the largest part of them.
    pub cause: Cause,
    /// Share of the time that goes when the cause goes, 0 to 1, by the model; none: the model gives none.
    pub share: Option<f64>,
    /// The answer, for someone who does not know the terms.
    pub sentence: String,
    /// What one can do about it; empty: nothing is known.
    pub advice: String,
    /// Source file of the line that matters; none: unknown.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The figures that it rests on, the weightiest first.
    pub evidence: Vec<Evidence>,
    /// Times of one invocation if one thing were otherwise.
    pub what_if: Vec<WhatIf>,
    /// What was not looked at and why, a sentence each.
    pub notes: Vec<String>,
}

/// What takes the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Bytes from or to a level of the memory.
    Bandwidth,
    /// Loads that wait for a level of the memory, each for the one before or with too few under way.
    Latency,
    /// Translations of addresses.
    Translations,
    /// Operations that wait for the result of the one before.
    Chain,
    /// Divisions and square roots.
    Divisions,
    /// Branches that are predicted wrongly.
    Branches,
    /// Instructions cannot be fetched and decoded as fast as they could be executed.
    FrontEnd,
    /// Scalar instructions where vectors would do.
    Scalar,
    /// Stores.
    Stores,
    /// Loads that read what a store just before has written.
    Forwarding,
    /// Pages that are touched first, or faults of other kinds.
    PageFaults,
    /// Threads that have less to do than others.
    Imbalance,
    /// Waiting: for locks, other threads, the system.
    Waiting,
    /// A unit of the processor that is busy in most cycles.
    Units,
    /// The processor executes as much as it can.
    Instructions,
    /// Nothing that was looked at explains it.
    Unknown,
}

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is, for a reader: `misses of L2`.
    pub what: String,
    /// The figure with its unit, with as many digits as it deserves: `12.3 per 1000 instructions`.
    pub value: String,
    /// Where it comes from: `exact counts`, `simulated caches`, `llvm-mca icelake-server`, `measured machine`, `hardware counters`,
    /// `replay`, `compiler`.
    pub source: String,
}

/// The time of one invocation if one thing were otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhatIf {
    /// What would be otherwise: `all data in L1`.
    pub change: String,
    /// Seconds of one invocation; none: it could not be found.
    pub seconds: Option<f64>,
    /// Confidence interval of them, 95 %; none: not measured.
    pub interval: Option<(f64, f64)>,
    /// How it was found.
    pub found: Way,
    /// What was done, or why it could not be found.
    pub how: String,
}

/// How a time was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A changed codelet was replayed.
    Replayed,
    /// A model says it.
    Modelled,
}
