//! Profiles: the JSON that `cere profile` keeps in the store.

use serde::{Deserialize, Serialize};

/// Version of the profile file.
pub const PROFILE_VERSION: u32 = 2;

/// A region by identity: the unit that holds it and its index there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RegionKey {
    /// The unit's id.
    pub unit: String,
    /// The region's index in [`crate::build::Unit::regions`].
    pub index: u32,
}

/// A process of a run, identified so that the same process of another run is found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessName {
    /// The file that it runs.
    pub program: std::path::PathBuf,
    /// Its arguments, the program's name first.
    pub arguments: Vec<String>,
    /// How many processes of the run had the same program and arguments before it.
    pub before: u32,
}

/// The state of a file at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Device that holds it.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub modified: i64,
}

/// The standard input of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdin {
    /// A terminal, the null device, or no open descriptor.
    Nothing,
    /// A file, from this offset on.
    File(FileState, u64),
    /// A pipe, a socket, another device: another run may read something else.
    #[default]
    Unknown,
}

/// The known input of a run: standard input and files named as arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInput {
    /// Its standard input.
    pub stdin: Stdin,
    /// The files that arguments name, whole or after a `=`; `None` if there is no such file. Files that the run
    /// wrote are excluded.
    pub files: Vec<(String, Option<FileState>)>,
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
    /// Number of runs of the profile: times are medians over the runs.
    #[serde(default = "once")]
    pub runs: u32,
    /// The process of the run that was profiled.
    #[serde(default)]
    pub process: ProcessName,
    /// What the run read.
    #[serde(default)]
    pub input: RunInput,
    /// How the program ended, if not with status 0: `exit status: 3`, `signal: 11 (SIGSEGV)`.
    #[serde(default)]
    pub ended: Option<String>,
    /// Run time of the program in seconds, without the cost of the probes.
    pub seconds: f64,
    /// Share of the run time spent inside regions, 0 to 1.
    pub coverage: f64,
    /// Frequency of the time stamp counter in Hz; cycle counts divided by it are seconds.
    pub tsc_hz: f64,
    /// Cost of one probe pair in cycles that falls inside the region's own time (already subtracted), measured at the
    /// program's start, or against runs without probes where they take much of the run.
    pub probe_inside: f64,
    /// Cost of one probe pair in cycles that falls on the caller (already subtracted).
    pub probe_outside: f64,
    /// One entry a region that ran, by falling self time.
    pub regions: Vec<RegionProfile>,
    /// The tree of regions calling regions; the root (index 0) is the program outside all regions.
    pub tree: Vec<TreeNode>,
    /// Region entries of the main thread over the run, thinned to bounded size, by rising time.
    #[serde(default)]
    pub timeline: Vec<Passage>,
    /// Probe events in threads other than the first, which are not timed.
    #[serde(default)]
    pub other_threads: u64,
    /// Regions that such threads entered, by falling number of entries.
    #[serde(default)]
    pub elsewhere: Vec<Elsewhere>,
    /// Processor time of the process, if it is known.
    #[serde(default)]
    pub processor: Option<ProcessorTime>,
}

/// A region that threads other than the first entered, outside teams. It was not timed there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Which region.
    pub key: RegionKey,
    /// Its display name.
    pub name: String,
    /// Times it was entered there.
    pub entries: u64,
}

/// Seconds that a process was on processors, from the program's start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ProcessorTime {
    /// In all threads.
    pub all: f64,
    /// In the first one.
    pub first: f64,
    /// In threads of the OpenMP runtime.
    pub team: f64,
}

impl ProcessorTime {
    /// In threads that are neither: what they run is not timed.
    pub fn others(&self) -> f64 {
        (self.all - self.first - self.team).max(0.0)
    }

    /// The same as a share of all, 0 to 1.
    pub fn other_share(&self) -> f64 {
        match self.all > 0.0 {
            true => self.others() / self.all,
            false => 0.0,
        }
    }
}

impl Profile {
    /// Times that threads other than the first entered a region, outside teams.
    pub fn entries_elsewhere(&self, key: &RegionKey) -> u64 {
        let found = self.elsewhere.iter().find(|e| e.key == *key);
        found.map_or(0, |e| e.entries)
    }

    /// The entry of a region, if there is one.
    pub fn region(&self, key: &RegionKey) -> Option<&RegionProfile> {
        self.regions.iter().find(|r| r.key == *key)
    }

    /// Whether a signal ended the program.
    pub fn was_cut(&self) -> bool {
        let ended = self.ended.as_deref();
        ended.is_some_and(|ended| ended.starts_with("signal"))
    }
}

const fn once() -> u32 {
    1
}

/// A region was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// Index into [`Profile::regions`].
    pub region: usize,
    /// Invocation, from 1.
    pub invocation: u64,
    /// Cycles of the time stamp counter since the program's start, probes included.
    pub start: u64,
}

/// The times of one region in a run.
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
    /// Estimated mean error of an invocation's time over the mean time, from the differences between runs; 0 for a single run.
    #[serde(default)]
    pub noise: f64,
    /// The kept part of the per-invocation trace.
    pub trace: Trace,
}

/// Inclusive cycles of single invocations, in bounded space: all of the first ones, then those that [`is_sampled`] chooses
/// and those that the run was asked to keep.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Trace {
    /// Cycles of invocations 1, 2, 3, ... without gap.
    pub first: Vec<u64>,
    /// One in this many later invocations is sampled; a power of two.
    pub stride: u64,
    /// (invocation, cycles) of later ones, by rising invocation.
    pub sampled: Vec<(u64, u64)>,
    /// When the invocations of `first` began, in cycles of the counter since the program's start, probes included; 0 for
    /// those that were running when the program ended out of order.
    #[serde(default)]
    pub first_starts: Vec<u64>,
    /// When those of `sampled` began.
    #[serde(default)]
    pub sampled_starts: Vec<u64>,
}

/// Whether a trace that keeps one in `stride` (a power of two) later invocations keeps this one. The choice is by a
/// hash: a period of the program that divides the stride would otherwise show one of its phases only. What a stride
/// keeps, half of it keeps as well.
pub const fn is_sampled(invocation: u64, stride: u64) -> bool {
    // The finaliser of splitmix64 (Steele, Lea, Flood 2014), a bijection.
    let mut hash = invocation;
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    hash & (stride - 1) == 0
}

impl Trace {
    /// Cycles of `invocation` (from 1), if they were kept.
    pub fn get(&self, invocation: u64) -> Option<u64> {
        let position = usize::try_from(invocation.checked_sub(1)?).ok()?;
        if let Some(cycles) = self.first.get(position) {
            return Some(*cycles);
        }
        Some(self.sampled[self.place(invocation)?].1)
    }

    /// When `invocation` (from 1) began, in cycles since the program's start, if that was kept.
    pub fn start(&self, invocation: u64) -> Option<u64> {
        let position = usize::try_from(invocation.checked_sub(1)?).ok()?;
        let start = match position < self.first.len() {
            true => self.first_starts.get(position),
            false => self.sampled_starts.get(self.place(invocation)?),
        };
        start.copied().filter(|start| *start > 0)
    }

    fn place(&self, invocation: u64) -> Option<usize> {
        let key = |(i, _): &(u64, u64)| *i;
        self.sampled.binary_search_by_key(&invocation, key).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_kept_and_periods_are_not_met() {
        for stride in [1, 2, 64, 1 << 20] {
            let kept: Vec<u64> = (1..1 << 22).filter(|i| is_sampled(*i, stride)).collect();
            assert!(kept.iter().all(|i| is_sampled(*i, stride / 2 + stride % 2)));
            let expected = (1u64 << 22) as f64 / stride as f64;
            assert!((kept.len() as f64 / expected - 1.0).abs() < 0.7);
            if (2..1000).contains(&stride) {
                let odd = kept.iter().filter(|i| **i % 2 == 1).count() as f64;
                assert!((odd / kept.len() as f64 - 0.5).abs() < 0.05);
            }
        }
    }
}
