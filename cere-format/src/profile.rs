//! Profiles: the JSON that `cere profile` keeps in the store.

use serde::{Deserialize, Serialize};

/// Version of the profile file.
pub const PROFILE_VERSION: u32 = 1;

/// A region by identity: the unit that holds it and its index there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RegionKey {
    /// The unit's id.
    pub unit: String,
    /// The region's index in [`crate::build::Unit::regions`].
    pub index: u32,
}

/// A profile of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Profile {
    /// [`PROFILE_VERSION`].
    pub version: u32,
    /// The command that was run.
    pub command: Vec<String>,
    /// Directory that it ran in.
    pub directory: std::path::PathBuf,
    /// SHA-256 of the program's file, in hexadecimal; empty if it is not known.
    #[serde(default)]
    pub program: String,
    /// Run time of the program in seconds, the probes' own time taken off.
    pub seconds: f64,
    /// Share of the run time spent inside regions, 0 to 1.
    pub coverage: f64,
    /// Frequency of the time stamp counter in Hz; cycle counts divided by it are seconds.
    pub tsc_hz: f64,
    /// Cost of one probe pair in cycles that falls inside the region's own time (already subtracted).
    pub probe_inside: f64,
    /// Cost of one probe pair in cycles that falls on the caller (already subtracted).
    pub probe_outside: f64,
    /// One entry a region that ran, by falling self time.
    pub regions: Vec<RegionProfile>,
    /// The tree of regions calling regions; the root (index 0) is the program outside all regions.
    pub tree: Vec<TreeNode>,
}

/// What one region did in a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RegionProfile {
    /// Which region.
    pub key: RegionKey,
    /// Its display name.
    pub name: String,
    /// Times it was entered.
    pub invocations: u64,
    /// Seconds inside, regions called included; recursion counted once.
    pub inclusive_seconds: f64,
    /// Seconds inside, regions called excluded.
    pub self_seconds: f64,
    /// `self_seconds` over the run time, 0 to 1.
    pub share: f64,
    /// Shortest, mean and longest inclusive cycles of an invocation.
    pub cycles_min: u64,
    /// Mean inclusive cycles of an invocation.
    pub cycles_mean: f64,
    /// Longest inclusive cycles of an invocation.
    pub cycles_max: u64,
    /// The kept part of the per-invocation trace.
    pub trace: Trace,
}

/// Inclusive cycles of single invocations, in bounded space: the first ones all, then every `stride`-th and those that
/// the run was asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Trace {
    /// Cycles of invocations 1, 2, 3, ... without gap.
    pub first: Vec<u64>,
    /// Distance between later invocations that are kept unasked; a power of two.
    pub stride: u64,
    /// (invocation, cycles) of later ones, by rising invocation.
    pub sampled: Vec<(u64, u64)>,
}

impl Trace {
    /// Cycles of `invocation` (from 1), if they were kept.
    pub fn get(&self, invocation: u64) -> Option<u64> {
        let position = usize::try_from(invocation.checked_sub(1)?).ok()?;
        if let Some(cycles) = self.first.get(position) {
            return Some(*cycles);
        }
        let found = self
            .sampled
            .binary_search_by_key(&invocation, |(i, _)| *i)
            .ok()?;
        Some(self.sampled[found].1)
    }
}

/// A node of the tree of regions calling regions: a region under a particular chain of callers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TreeNode {
    /// Index into [`Profile::regions`]; none for the root.
    pub region: Option<usize>,
    /// Index of the calling node; none for the root.
    pub parent: Option<usize>,
    /// Times entered from this chain.
    pub invocations: u64,
    /// Seconds inside, regions called included.
    pub inclusive_seconds: f64,
    /// Seconds inside, regions called excluded.
    pub self_seconds: f64,
}
