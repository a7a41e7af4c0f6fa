//! What a simulation counts.
//!
//! All counts have 64 bits. Sums, bytes and scaled counts saturate: `u64::MAX` means that or more. (A count that grows by
//! one an access does not get there: that takes centuries.)

use serde::{Deserialize, Serialize};

/// The results of a simulation since its start, or since the counters were last reset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// One entry per level, nearest first. Private levels are summed over the cores.
    pub levels: Vec<LevelCounters>,
    /// Traffic behind the last level.
    pub memory: MemoryCounters,
    /// One entry per level of TLBs, nearest first, summed over the cores. Sampling leaves these exact.
    pub tlbs: Vec<TlbCounters>,
    /// Lookups that missed every TLB: page walks. 0 if the geometry has no TLB.
    pub page_walks: u64,
    /// Distinct lines and pages.
    pub footprint: Footprint,
    /// What sampling left out and how uncertain that makes the counts; absent if every line was simulated.
    pub sampling: Option<Sampling>,
}

/// One level. All counts are lines of `line` bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelCounters {
    /// Name of the level.
    pub name: String,
    /// Bytes of a line.
    pub line: u32,
    /// Demand loads that found their line. An access of several lines counts once per line.
    pub load_hits: u64,
    /// Demand loads that did not.
    pub load_misses: u64,
    /// Stores that found their line; behind the first level, requests on behalf of stores.
    pub store_hits: u64,
    /// Stores that did not.
    pub store_misses: u64,
    /// Lines put in by demand, by write-backs of nearer levels, and, in victim levels, by their evictions.
    pub fills: u64,
    /// Lines put in by the prefetcher and by prefetch instructions; not part of `fills`.
    pub prefetch_fills: u64,
    /// Demand hits that were the first one on a line put in by a prefetch.
    pub prefetch_hits: u64,
    /// Dirty lines that left: by eviction, by invalidation, or because another core loads them.
    pub write_backs: u64,
    /// Lines that left because an inclusive level farther away evicted them.
    pub invalidations: u64,
    /// Lines that left because another core, or a non-temporal store, wrote to them.
    pub coherence_invalidations: u64,
}

impl LevelCounters {
    /// Demand hits.
    pub fn hits(&self) -> u64 {
        self.load_hits.saturating_add(self.store_hits)
    }

    /// Demand misses.
    pub fn misses(&self) -> u64 {
        self.load_misses.saturating_add(self.store_misses)
    }

    /// Demand misses over demand hits and misses; `None` if there were none.
    pub fn miss_rate(&self) -> Option<f64> {
        let misses = self.misses() as f64;
        let all = misses + self.hits() as f64;
        (all > 0.0).then(|| misses / all)
    }

    /// Bytes put in, by prefetches too.
    pub fn bytes_filled(&self) -> u64 {
        let lines = self.fills.saturating_add(self.prefetch_fills);
        lines.saturating_mul(self.line.into())
    }

    /// Bytes of the dirty lines that left.
    pub fn bytes_written_back(&self) -> u64 {
        self.write_backs.saturating_mul(self.line.into())
    }

    /// Bytes filled and written back: the traffic between this level and what lies behind it. (In a victim level, the
    /// traffic on its near side is counted as fills.)
    pub fn traffic(&self) -> u64 {
        self.bytes_filled()
            .saturating_add(self.bytes_written_back())
    }
}

/// Memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryCounters {
    /// Bytes read: lines fetched by demand and by prefetches.
    pub bytes_read: u64,
    /// Those of `bytes_read` that a prefetch asked for.
    pub bytes_prefetched: u64,
    /// Bytes written: by write-backs and by non-temporal stores.
    pub bytes_written: u64,
    /// Those of `bytes_written` that non-temporal stores wrote. Bytes that wait in a write-combining buffer are in both.
    pub bytes_non_temporal: u64,
    /// Write-combining buffers that left full.
    pub combined_whole: u64,
    /// Write-combining buffers that left in part; those that still wait are not in it.
    pub combined_partial: u64,
}

impl MemoryCounters {
    /// Bytes read and written.
    pub fn traffic(&self) -> u64 {
        self.bytes_read.saturating_add(self.bytes_written)
    }
}

/// One level of TLBs. An access looks up each page that it touches once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbCounters {
    /// Lookups that found their page.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
}

/// Distinct lines and pages that loads and stores touched (prefetches alone do not count).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// Lines of the first level.
    pub lines: u64,
    /// Bytes of such a line; 64 if there is no level.
    pub line: u32,
    /// Pages of 4 KiB, in huge pages too.
    pub pages: u64,
    /// Whether there was room for every page. If not, lines and pages are lower bounds.
    pub complete: bool,
}

impl Footprint {
    /// Bytes of the distinct lines.
    pub fn bytes(&self) -> u64 {
        self.lines.saturating_mul(self.line.into())
    }
}

/// How the counts of a sampled simulation came about.
///
/// Lines are divided into groups by their number modulo the number of groups, which divides the number of sets of every
/// level: a group owns the same share of the sets of each level, and shares no set with another group. `simulated` groups,
/// drawn by the seed, are simulated exactly, the others not at all; counts of lines are scaled by `of / simulated`.
/// The standard errors are those of a total over `of` groups estimated from a simple random sample of them without
/// replacement. A program that uses few sets (a stride of a large power of two) can be missed; compare
/// [`Sampling::skipped`] with the hits and misses of the first level.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Groups simulated.
    pub simulated: u32,
    /// Groups there are.
    pub of: u32,
    /// Line accesses that were not simulated (exact).
    pub skipped: u64,
    /// Standard errors of each level, nearest first.
    pub levels: Vec<LevelErrors>,
    /// Standard error of [`MemoryCounters::bytes_read`].
    pub bytes_read: f64,
    /// Standard error of [`MemoryCounters::bytes_written`].
    pub bytes_written: f64,
}

/// Standard errors of the counts of a level, in lines; infinite with one group simulated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelErrors {
    /// Of [`LevelCounters::misses`].
    pub misses: f64,
    /// Of [`LevelCounters::write_backs`].
    pub write_backs: f64,
}
