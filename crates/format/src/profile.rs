//! Profiles: the JSON that `cere profile` keeps in the store.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the profile file.
pub const PROFILE_VERSION: u32 = 3;

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
    /// How many processes of the run with the same program, arguments and rank came before it.
    pub before: u32,
    /// What its launcher calls it: see [`crate::rank::own`].
    #[serde(default)]
    pub rank: Option<String>,
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
    /// Why there are no more runs, if one failed that should have been merged.
    #[serde(default)]
    pub alone: Option<String>,
    /// The process of the run that was profiled.
    #[serde(default)]
    pub process: ProcessName,
    /// The variable that tells processes from one another, if the user named one.
    #[serde(default)]
    pub process_key: Option<String>,
    /// How many processes the program's launcher started, if it told: those that left no profile are not in `ranks`.
    #[serde(default)]
    pub launched: Option<u32>,
    /// Whether the user chose its rank.
    #[serde(default)]
    pub by_rank: bool,
    /// What the run read.
    #[serde(default)]
    pub input: RunInput,
    /// How the program ended, if not with status 0: `exit status: 3`, `signal: 11 (SIGSEGV)`.
    #[serde(default)]
    pub ended: Option<String>,
    /// Run time of the program in seconds, without the cost of the probes.
    pub seconds: f64,
    /// Share of [`Profile::outside_mpi`] that the first thread spent inside regions, 0 to 1.
    pub coverage: f64,
    /// Frequency of the time stamp counter in Hz; cycle counts divided by it are seconds.
    pub tsc_hz: f64,
    /// Cost of one probe pair in cycles that falls inside the region's own time (already subtracted), measured at the
    /// program's start, or against runs without probes where they take much of the run.
    pub probe_inside: f64,
    /// Cost of one probe pair in cycles that falls on the caller (already subtracted).
    pub probe_outside: f64,
    /// One entry a region that the first thread entered, by falling self time; shares, traces and the tree are that thread's.
    pub regions: Vec<RegionProfile>,
    /// The tree of regions calling regions; the root (index 0) is the program outside all regions.
    pub tree: Vec<TreeNode>,
    /// Region entries of the main thread over the run, thinned to bounded size, by rising time.
    #[serde(default)]
    pub timeline: Vec<Passage>,
    /// The regions over all threads, by falling work; the threads of OpenMP teams are part of the region that forked them.
    #[serde(default)]
    pub over_threads: Vec<OverThreads>,
    /// The threads that entered regions, by their numbers, the first thread first; none of OpenMP teams.
    #[serde(default)]
    pub threads: Vec<ThreadProfile>,
    /// Invocations in threads for which there was no room, which are not timed.
    #[serde(default)]
    pub threads_lost: u64,
    /// Seconds of the first thread in calls of MPI.
    #[serde(default)]
    pub mpi_seconds: f64,
    /// Processor time of the process, if it is known.
    #[serde(default)]
    pub processor: Option<ProcessorTime>,
    /// All processes of a parallel program, this one among them, by rank; empty if the program has no ranks.
    #[serde(default)]
    pub ranks: Vec<RankProfile>,
}

/// What one process of a parallel program spent its time on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankProfile {
    /// What its launcher calls it.
    pub rank: String,
    /// The file that it ran.
    pub program: std::path::PathBuf,
    /// Its run time in seconds.
    pub seconds: f64,
    /// Seconds on processors in regions, in all threads but those of teams.
    pub work_seconds: f64,
    /// Seconds of its first thread in calls of MPI.
    pub mpi_seconds: f64,
    /// Its regions.
    pub regions: Vec<RankRegion>,
}

/// A region in one process of a parallel program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRegion {
    /// Which region.
    pub key: RegionKey,
    /// Its display name.
    pub name: String,
    /// Times it was entered.
    pub invocations: u64,
    /// Seconds in it and in no region that it calls, over all threads, without those in MPI.
    pub self_seconds: f64,
    /// Seconds in it and in what it calls, over all threads; 0 in older profiles.
    #[serde(default)]
    pub inclusive_seconds: f64,
    /// Seconds in calls of MPI from it.
    pub mpi_seconds: f64,
}

/// A region over the processes of a parallel program.
#[derive(Debug, Clone, PartialEq)]
pub struct OverRanks {
    /// Its display name.
    pub name: String,
    /// Smallest self time in seconds; 0 if a rank did not run it.
    pub least: f64,
    /// Mean self time over all ranks.
    pub mean: f64,
    /// Largest self time.
    pub most: f64,
    /// Mean seconds in MPI over all ranks.
    pub mpi: f64,
    /// The rank with the largest.
    pub slowest: String,
}

impl OverRanks {
    /// By how much the slowest rank exceeds the mean: 0 where all are alike.
    pub fn imbalance(&self) -> f64 {
        match self.mean > 0.0 {
            true => self.most / self.mean - 1.0,
            false => 0.0,
        }
    }
}

impl Profile {
    /// Each region over all ranks, by falling mean; empty if the program has no ranks.
    pub fn over_ranks(&self) -> Vec<OverRanks> {
        let all = self.ranks.len();
        let mut by_key: BTreeMap<&RegionKey, Vec<(&RankRegion, &str)>> = BTreeMap::new();
        for rank in &self.ranks {
            for region in &rank.regions {
                let found = by_key.entry(&region.key).or_default();
                found.push((region, &rank.rank));
            }
        }
        let of = |ranks: Vec<(&RankRegion, &str)>| {
            let time = |(region, _): &(&RankRegion, &str)| region.self_seconds;
            let slowest = ranks.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
            let least = ranks.iter().map(time).min_by(f64::total_cmp);
            let mean = |of: fn(&RankRegion) -> f64| {
                ranks.iter().map(|r| of(r.0)).sum::<f64>() / all as f64
            };
            Some(OverRanks {
                name: slowest.0.name.clone(),
                least: least.filter(|_| ranks.len() == all).unwrap_or(0.0),
                mean: mean(|r| r.self_seconds),
                most: time(slowest),
                mpi: mean(|r| r.mpi_seconds),
                slowest: slowest.1.to_owned(),
            })
        };
        let mut regions: Vec<OverRanks> = by_key.into_values().filter_map(of).collect();
        regions.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        regions
    }
}

/// A region over all threads of the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverThreads {
    /// Which region.
    pub key: RegionKey,
    /// Its display name.
    pub name: String,
    /// Threads that entered it.
    pub threads: u64,
    /// Times it was entered.
    pub invocations: u64,
    /// Seconds inside, regions called excluded: the sum over the threads.
    pub self_seconds: f64,
    /// Seconds inside, regions called included; recursion counted once in each thread.
    pub inclusive_seconds: f64,
    /// Part of `self_seconds` in which the thread was not on a processor: it waits, or others have the processor. 0 for parallel
    /// regions, in which the team works.
    pub waiting_seconds: f64,
    /// Seconds in calls of MPI from it, which are no part of `self_seconds`.
    pub mpi_seconds: f64,
    /// The first thread's share of `self_seconds`, 0 to 1.
    pub first_share: f64,
    /// Quantiles of the cycles of an invocation, as [`RegionProfile::cycles_min`], in threads other than the first: the least, of each
    /// tenth up to the most; empty if there are none.
    #[serde(default)]
    pub cycles: Vec<f64>,
}

impl OverThreads {
    /// Cycles of an invocation in threads other than the first: those that a fifth is below, the median, and those that a fifth is
    /// above.
    pub fn usual_cycles(&self) -> Option<[f64; 3]> {
        let [low, middle, high] = [2, 5, 8].map(|part| self.cycles.get(part));
        Some([*low?, *middle?, *high?])
    }

    /// Seconds on processors, of the threads that entered it.
    pub fn work(&self) -> f64 {
        self.self_seconds - self.waiting_seconds
    }
}

/// A thread that entered regions; or several, one after the other, in programs that start very many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadProfile {
    /// Its number in the order in which threads were started, those of teams apart; 0 for the first thread.
    pub number: u64,
    /// How many threads this stands for; `number` is the last one's.
    pub users: u64,
    /// Seconds on processors, from its first region on.
    pub processor_seconds: f64,
    /// Seconds in calls of MPI.
    pub mpi_seconds: f64,
    /// What it entered.
    pub regions: Vec<ThreadRegion>,
}

/// A region in a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadRegion {
    /// Index into [`Profile::over_threads`].
    pub region: usize,
    /// That of the region that calls it, in a thread other than the first; none if none does, or several.
    #[serde(default)]
    pub caller: Option<usize>,
    /// As in [`OverThreads`].
    pub invocations: u64,
    /// As in [`OverThreads`].
    pub self_seconds: f64,
    /// As in [`OverThreads`].
    pub inclusive_seconds: f64,
    /// As in [`OverThreads`].
    pub waiting_seconds: f64,
    /// Shortest, mean and longest cycles of an invocation: inclusive, without waiting outside parallel regions.
    pub cycles_min: u64,
    /// See `cycles_min`.
    pub cycles_mean: f64,
    /// See `cycles_min`.
    pub cycles_max: u64,
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
    /// Part of all of them that regions cover.
    #[serde(default)]
    pub covered: f64,
}

impl ProcessorTime {
    /// In threads that are neither.
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
    /// Seconds of the run that the first thread was not in calls of MPI: what shares and coverages are of.
    pub fn outside_mpi(&self) -> f64 {
        (self.seconds - self.mpi_seconds).max(0.0)
    }

    /// How many of the processes that the launcher started left no profile, and how many it started.
    pub fn not_seen(&self) -> Option<(u32, u32)> {
        let launched = self.launched.filter(|_| self.process.rank.is_some())?;
        let silent = launched.saturating_sub(self.ranks.len().max(1) as u32);
        (silent > 0).then_some((silent, launched))
    }

    /// The region over all threads.
    pub fn over_threads(&self, key: &RegionKey) -> Option<&OverThreads> {
        self.over_threads.iter().find(|r| r.key == *key)
    }

    /// Times that threads other than the first entered a region, outside teams.
    pub fn entries_elsewhere(&self, key: &RegionKey) -> u64 {
        let all = self.over_threads(key).map_or(0, |r| r.invocations);
        all.saturating_sub(self.region(key).map_or(0, |r| r.invocations))
    }

    /// Regions that threads other than the first alone entered.
    pub fn elsewhere(&self) -> impl Iterator<Item = &OverThreads> {
        let alone = |r: &&OverThreads| self.region(&r.key).is_none();
        self.over_threads.iter().filter(alone)
    }

    /// The share of the processor time in threads that are neither the first nor of a team, if it is notable.
    pub fn others_at_work(&self) -> Option<f64> {
        let share = self.processor?.other_share();
        (share >= 0.01).then_some(share)
    }

    /// Whether threads other than the first entered regions.
    pub fn has_other_threads(&self) -> bool {
        self.threads.iter().any(|thread| thread.number > 0)
    }

    /// Seconds on processors in regions, in all threads but those of teams.
    pub fn work(&self) -> f64 {
        self.over_threads.iter().map(OverThreads::work).sum()
    }

    /// The entry of a region, if there is one.
    pub fn region(&self, key: &RegionKey) -> Option<&RegionProfile> {
        self.regions.iter().find(|r| r.key == *key)
    }

    /// The program's exit status; 128 plus the number of a signal.
    pub fn status(&self) -> u8 {
        self.ended.as_deref().map_or(0, status_of)
    }

    /// Whether a signal ended the program.
    pub fn was_cut(&self) -> bool {
        let ended = self.ended.as_deref();
        ended.is_some_and(|ended| ended.starts_with(SIGNAL))
    }
}

/// The status that a shell would report for [`Profile::ended`].
fn status_of(ended: &str) -> u8 {
    let number = ended.split_once(": ").map_or("", |(_, number)| number);
    let digits = number.split(|c: char| !c.is_ascii_digit()).next();
    let number: u8 = digits.and_then(|digits| digits.parse().ok()).unwrap_or(1);
    match ended.starts_with(SIGNAL) {
        true => number.saturating_add(128),
        false => number,
    }
}

/// How [`Profile::ended`] begins where a signal ended the program.
const SIGNAL: &str = "signal";

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

/// The times of one region in a run: the first thread's.
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
    /// `self_seconds` over [`Profile::outside_mpi`], 0 to 1.
    pub share: f64,
    /// Whether a team of threads runs it, which is forked where it is entered.
    #[serde(default)]
    pub parallel: bool,
    /// Part of `self_seconds` in which the first thread was not on a processor; 0 for parallel regions.
    #[serde(default)]
    pub waiting_seconds: f64,
    /// Seconds of the first thread in calls of MPI from it, which are no part of `self_seconds`.
    #[serde(default)]
    pub mpi_seconds: f64,
    /// Shortest, mean and longest cycles of an invocation: inclusive, without waiting outside parallel regions.
    pub cycles_min: u64,
    /// See `cycles_min`.
    pub cycles_mean: f64,
    /// See `cycles_min`.
    pub cycles_max: u64,
    /// Estimated mean error of an invocation's time over the mean time, from the differences between runs; 0 for a single run.
    #[serde(default)]
    pub noise: f64,
    /// The kept part of the per-invocation trace.
    pub trace: Trace,
}

/// Cycles of single invocations, as in [`RegionProfile::cycles_min`], in bounded space: all of the first ones, then those that
/// [`is_sampled`] chooses and those that the run was asked to keep.
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
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    #[test]
    fn statuses_are_read_from_their_text() {
        for (raw, expected) in [
            (0x100, 1),
            (0xff00, 255),
            (11, 139),
            (0x80 | 6, 134),
            (64, 192),
        ] {
            let ended = ExitStatus::from_raw(raw).to_string();
            assert_eq!(status_of(&ended), expected, "{ended}");
        }
    }

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
