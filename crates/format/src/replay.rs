//! The interface between the replay generator and the runtime inside the replay executable.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Version of the replay plan and outcome.
pub const REPLAY_VERSION: u32 = 3;

/// Counted up when replays of a codelet come to measure something else, as by another warm-up: what was recorded before then
/// no longer counts.
pub const REPLAYS: u32 = 1;

/// Environment variable that names the [`ReplayPlan`] file for a replay executable.
pub const ENV_PLAN: &str = "CERE_REPLAY_PLAN";

/// Environment variable that names the [`KeepPlan`] file for a process that keeps a captured state.
pub const ENV_KEEP: &str = "CERE_REPLAY_KEEP";

/// Descriptor on which such a process gets a [`KeptRequest`] a line, and answers with a [`KeptAnswer`] a line.
pub const KEEP_SOCKET: i32 = 3;

/// A statement of a filter of system calls, as the kernel takes it.
pub type Statement = (u16, u8, u8, u32);

/// The plan of a process that restores the captured state once, for replays that are forks of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeepPlan {
    /// Directory of the unpacked package.
    pub package: PathBuf,
    /// What keeps the forks from starting processes and the like; empty without a sandbox.
    pub filters: Vec<Vec<Statement>>,
    /// Stands for the fork's process number in them.
    pub own_id: u32,
}

/// A replay that is to run as a fork.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptRequest {
    /// The executable.
    pub executable: PathBuf,
    /// Variables of its environment, with their values or absent.
    pub environment: Vec<(String, Option<String>)>,
}

/// What the process answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptAnswer {
    /// The state is restored.
    Ready,
    /// The process number of the fork.
    Started(i32),
    /// It ended, with the status that `waitpid` gave.
    Ended(i32),
}

/// The plan of a replay executable. The page files lie unpacked beside it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplayPlan {
    /// [`REPLAY_VERSION`].
    pub version: u32,
    /// Directory of the unpacked package: manifest, pages, thread-local blocks.
    pub package: PathBuf,
    /// Where the outcome goes (JSON, [`ReplayOutcome`]).
    pub outcome: PathBuf,
    /// State of the caches at the start of each timed repetition.
    pub warmup: Warmup,
    /// How long a line that nobody uses stays in this machine's caches while the program brings in nothing, in nanoseconds;
    /// `None`: until the program itself replaces it. Older pages of a trace are flushed.
    #[serde(default)]
    pub survival_ns: Option<u64>,
    /// What is put into a state of its own after that.
    #[serde(default)]
    pub operands: Vec<PlacedOperand>,
    /// Caches that the system describes wrongly, as they were measured.
    #[serde(default)]
    pub caches: Vec<crate::machine::Correction>,
    /// When it has repeated enough.
    pub repetitions: Repetitions,
    /// Whether to compare the exit state.
    pub compare: bool,
    /// Threads of the teams that the region forks, unless it says otherwise; `None` without an OpenMP runtime.
    pub threads: Option<u32>,
    /// Whether `threads` counts even where the region says otherwise (`num_threads`).
    pub insist: bool,
    /// Whether it is a fork of a process that keeps the captured state: what no invocation changes is in place.
    #[serde(default)]
    pub kept: bool,
    /// What names the region's calls that the sandbox refuses; none without a sandbox.
    #[serde(default)]
    pub guard: Option<Guard>,
    /// Nobody has read the code: it makes no system call but those that were captured, finds no state at exit in its memory, and
    /// nothing of an earlier repetition on its stack.
    #[serde(default)]
    pub sealed: bool,
    /// The code is counted, and writes its stream ([`crate::count`]) to this descriptor. The region then runs once, untimed.
    #[serde(default)]
    pub count: Option<i32>,
    /// Counters of the kernel that measure the region, which then is not timed. Those of a set count in the same invocations,
    /// those of different sets in different ones.
    #[serde(default)]
    pub counters: Vec<CounterSet>,
    /// Energy is measured as well, behind the timed repetitions.
    #[serde(default)]
    pub energy: Option<EnergyPlan>,
    /// The code reports where its stores are. The region then runs once, untimed. The words whose stores are kept; without any it is
    /// found out which words end wrong.
    #[serde(default)]
    pub stores: Option<Vec<u64>>,
    /// What the region copies without having set it, to be found out or known.
    #[serde(default)]
    pub unset: Unset,
    /// Leave out the untimed repetitions behind the first one, in which the processor learns a short region, and runs that share a
    /// reading of the clock: for simulators.
    #[serde(default)]
    pub untrained: bool,
    /// Print times and verdict, and end with status 1 unless the result is exact.
    #[serde(default)]
    pub report: bool,
    /// Changes of the memory, to see what it costs.
    #[serde(default)]
    pub memory: ChangedMemory,
}

/// Memory that is otherwise than captured, for a replay that is timed and not compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedMemory {
    /// [start, end) of whole pages that share few frames of physical memory, each range its own: all of it is in the nearest cache.
    /// Rising and apart.
    #[serde(default)]
    pub compact: Vec<(u64, u64)>,
    /// Frames of each of these ranges.
    #[serde(default)]
    pub frames: u64,
    /// Pages that were not there at entry are, full of zeros: no invocation takes their faults.
    #[serde(default)]
    pub present: bool,
    /// Memory lies in huge pages, as far as the system has some.
    #[serde(default)]
    pub huge: bool,
}

impl ChangedMemory {
    /// Whether it is as captured.
    pub fn is_none(&self) -> bool {
        self.compact.is_empty() && !self.present && !self.huge
    }
}

/// A word that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differing {
    /// Its address.
    pub address: u64,
    /// What it held in vivo.
    pub in_vivo: u64,
    /// What it holds here.
    pub in_vitro: u64,
    /// Whether that is an address in this replay's code, but for its lowest bytes.
    pub code: bool,
}

/// Words that an outcome lists at most.
pub const MOST_DIFFERING: usize = 1 << 20;

/// Bytes that a program copies though nobody has set them, such as those behind the tag of an enumeration of Rust's: they hold what
/// lay on the stack before, which depends on where code is and on what allocators leave there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unset {
    /// Fill the stack below the region, and what the allocator leaves there, with this byte: what differs by it comes from there. The
    /// outcome then lists [`ReplayOutcome::differing`].
    #[serde(default)]
    pub fill: Option<u8>,
    /// Words with such bytes, by rising address, and a bit for each: differences in those do not count.
    #[serde(default)]
    pub words: Vec<(u64, u8)>,
}

/// Descriptors of counters of the kernel (`perf_event_open`) that are disabled and count all threads of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterSet {
    /// Enabled while the region runs.
    pub region: Vec<i32>,
    /// The same events, enabled while nothing runs in the region's place: what enabling and entering cost.
    pub nothing: Vec<i32>,
}

/// How a replay measures energy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyPlan {
    /// The counters, which are added up.
    pub counters: Vec<EnergyCounter>,
    /// Rounds, each of which gives a value.
    pub rounds: u32,
    /// Seconds of the region in a round, at least.
    pub seconds: f64,
}

/// A counter of energy that the executable inherits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyCounter {
    /// Its zone: `package-0`.
    pub name: String,
    /// The open file, which reads microjoules.
    pub descriptor: i32,
    /// Microjoules at which it begins again at 0.
    pub range: u64,
}

/// What a round of invocations took, with the preparation of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyRound {
    /// Invocations.
    pub invocations: u32,
    /// Joules.
    pub joules: f64,
    /// Seconds.
    pub seconds: f64,
    /// Of these, seconds inside the region.
    pub inside: f64,
    /// Joules and seconds of preparing the region and running nothing in its place; none: the round is the region alone.
    pub preparing: Option<(f64, f64)>,
}

impl EnergyRound {
    /// Joules of an invocation: what is outside the region takes the power of preparing.
    pub fn joules_each(&self) -> f64 {
        let outside = (self.seconds - self.inside).max(0.0);
        let power = self
            .preparing
            .map_or(0.0, |(joules, seconds)| joules / seconds.max(1e-9));
        (self.joules - power * outside) / f64::from(self.invocations.max(1))
    }

    /// Seconds of an invocation.
    pub fn seconds_each(&self) -> f64 {
        self.inside / f64::from(self.invocations.max(1))
    }
}

/// State of the caches before a timed repetition (CERE thesis, 3.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Warmup {
    /// No line of what the codelet may use is in any cache.
    Cold,
    /// As `Cold`, then everything was read once: what fits is in this cache, nothing in those nearer to the core.
    Partial(CacheLevel),
    /// The codelet ran once, and its state was restored.
    WorkingSet,
    /// The pages of the captured trace were touched in their order; those that others would have replaced
    /// ([`ReplayPlan::survival_ns`]) are in no cache.
    PageTrace,
}

/// A cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheLevel {
    /// The second level.
    L2,
    /// The last level.
    Llc,
}

/// Where a part of a region's memory or code lies when a timed repetition begins (Whaley and Castaldo, 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// Read last: in the nearest cache that it fits in.
    Warm,
    /// In the second level and beyond, not in the first.
    L2,
    /// In the last level and beyond, not in those nearer to the core.
    Llc,
    /// In no cache.
    Cold,
}

impl CacheState {
    /// All of them, the nearest to the core first.
    pub const ALL: [Self; 4] = [Self::Warm, Self::L2, Self::Llc, Self::Cold];

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::L2 => "l2",
            Self::Llc => "llc",
            Self::Cold => "cold",
        }
    }
}

/// An operand by its name in the program, and its state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Operand {
    /// A variable, an argument of the region, `*pointer`, an address, [`Operand::DATA`] or [`Operand::CODE`].
    pub name: String,
    /// The state.
    pub state: CacheState,
}

impl Operand {
    /// Stands for all memory of the region that no other operand names.
    pub const DATA: &str = "data";
    /// Stands for the code that runs.
    pub const CODE: &str = "code";

    /// `a=cold,b=l2`, whatever the order in which they were given; empty for none.
    pub fn line(operands: &[Self]) -> String {
        let mut sorted: Vec<&Self> = operands.iter().collect();
        sorted.sort();
        let each = sorted
            .iter()
            .map(|o| format!("{}={}", o.name, o.state.name()));
        each.collect::<Vec<_>>().join(",")
    }
}

/// What of the replay's memory an operand is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperandMemory {
    /// [start, end) of captured memory that was there at entry, rising and apart.
    Ranges(Vec<(u64, u64)>),
    /// All memory of the region but the ranges of other operands.
    Data,
    /// The executable, its libraries and captured code.
    Code,
}

/// Memory with its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedOperand {
    /// Which.
    pub memory: OperandMemory,
    /// The state.
    pub state: CacheState,
}

/// When a replay has repeated enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Repetitions {
    /// Minimum undisturbed samples.
    pub least: u32,
    /// Maximum repetitions, including discarded ones.
    pub most: u32,
    /// Half the width of the median's confidence interval over the median at which the interval is narrow enough; 0 for never.
    pub precision: f64,
    /// Seconds after which no further repetition starts once three samples are there; after ten times as many one is
    /// enough, and disturbed ones will do.
    pub seconds: f64,
}

impl Repetitions {
    /// Exactly `n` repetitions.
    pub const fn exactly(n: u32) -> Self {
        Self {
            least: n,
            most: n,
            precision: 0.0,
            seconds: 1e9,
        }
    }
}

/// From 10 repetitions to 1000, until the median is known to 1 % or 2 seconds are over.
impl Default for Repetitions {
    fn default() -> Self {
        Self {
            least: 10,
            most: 1000,
            precision: 0.01,
            seconds: 2.0,
        }
    }
}

/// Confidence level of the intervals that replays report.
pub const CONFIDENCE: f64 = 0.95;

/// Repetitions whose time does not count, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    /// A page fault in the timed part.
    pub faults: u64,
    /// A context switch in the timed part.
    pub switches: u64,
    /// It began on one processor and ended on another.
    pub migrations: u64,
    /// The hypervisor or an interrupt took the processor: the sample lies far above the others.
    pub stolen: u64,
}

/// The report of a replay executable.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplayOutcome {
    /// [`REPLAY_VERSION`].
    pub version: u32,
    /// Cycles of each timed repetition that counts, in order, the clock's own cost subtracted. If none was undisturbed, the
    /// disturbed ones, and `disturbed` says so.
    pub cycles: Vec<u64>,
    /// Repetitions discarded.
    pub set_aside: SetAside,
    /// Whether `cycles` are of disturbed repetitions because there were no others.
    pub disturbed: bool,
    /// Runs of the codelet, each with its state restored, that share one reading of the clock. `cycles` are of one run, with the
    /// measured cost of restoring subtracted, and the warm-up is that of [`Warmup::WorkingSet`]. 1 unless the codelet is too
    /// short for the clock.
    pub batch: u32,
    /// Cycles that reading the clock takes, already subtracted.
    pub clock_cost: u64,
    /// Notes on the measurement, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Frequency of the time stamp counter in Hz.
    pub tsc_hz: f64,
    /// Comparison of the exit state after the first repetition; `None` if it was not requested.
    pub comparison: Option<Comparison>,
    /// Names the compared state in which the first repetition ended: 0 for the captured one.
    #[serde(default)]
    pub left: u64,
    /// Whether every later repetition ended in the same state as the first.
    pub repeatable: bool,
    /// If not: a place that differed, as in [`Difference::place`].
    #[serde(default)]
    pub varied: Option<String>,
    /// How often the compared run, or one that ended in another state, asked for the time and the like beyond what the captured
    /// invocation asked: a clock that ran on answered.
    #[serde(default)]
    pub asked_more: u64,
    /// Time of preparing the timed repetitions.
    #[serde(default)]
    pub preparation: Preparation,
    /// Variables of the program that the region used and the captured process did not have: they held nothing that came
    /// from there, and count for nothing in the comparison.
    #[serde(default)]
    pub lacking: Vec<String>,
    /// Invocations that each set of [`ReplayPlan::counters`] measured.
    #[serde(default)]
    pub measured: u32,
    /// What [`ReplayPlan::energy`] asks for.
    #[serde(default)]
    pub energy: Vec<EnergyRound>,
    /// Bytes that were put into the state of each of [`ReplayPlan::operands`].
    #[serde(default)]
    pub placed: Vec<u64>,
    /// What [`Unset::fill`] asks for: the words that differ; none if there are more than
    /// [`MOST_DIFFERING`].
    #[serde(default)]
    pub differing: Option<Vec<Differing>>,
    /// What [`ReplayPlan::stores`] asks for.
    #[serde(default)]
    pub stores: Option<Stores>,
}

/// What was stored in watched words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stores {
    /// Without watched words: some that end wrong, the one with the lowest address, then those that were stored last the earliest.
    pub wrong: Vec<u64>,
    /// Addresses of the watched words.
    pub words: Vec<u64>,
    /// How often each was stored.
    pub counts: Vec<u64>,
    /// The last store of each.
    pub last: Vec<Option<StoreEntry>>,
    /// The first stores of each, as many as there is room for, in the order of the stores.
    pub entries: Vec<StoreEntry>,
    /// Where stores are.
    pub sites: Vec<StoreSite>,
}

/// A store to a watched word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreEntry {
    /// Number of the word among [`Stores::words`].
    pub word: u32,
    /// Number of its place among [`Stores::sites`].
    pub site: u32,
    /// The word after it.
    pub value: u64,
    /// The word's bytes that were stored, a bit each.
    pub bytes: u8,
    /// What was stored: 1 a float, 2 a double, else something else.
    pub kind: u8,
    /// Iterations of [`StoreSite::loops`], from 1.
    pub iterations: Vec<u64>,
}

/// A store's place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSite {
    /// As the compiler names it; empty if that is not known.
    pub file: String,
    /// The function.
    pub function: String,
    /// From 1; 0: not known.
    pub line: u32,
    /// Lines of the innermost loops around it, four at most, the outermost of them first.
    pub loops: Vec<u32>,
}

/// The error of a replay whose region needs `variables` that the captured process did not have; `crossed`: on another architecture.
pub fn lacks(variables: &[String], crossed: bool) -> String {
    let (noun, it) = match variables.len() {
        1 => ("variable", "it"),
        _ => ("variables", "them"),
    };
    let here = match crossed {
        true => format!(
            "and the code for this architecture keeps {it}; replay with the build's flags, or where it was captured"
        ),
        false => format!("and the flags of this replay keep {it}; replay with the build's flags"),
    };
    format!(
        "the region uses the {noun} {}, which the captured program does not have as such: the optimiser of its build \
         split, shrank or removed {it}, {here}",
        variables.join(", ")
    )
}

/// Time of preparing all repetitions together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// Seconds of restoring the captured state.
    pub restoring: f64,
    /// Seconds of warming up.
    pub warming: f64,
}

/// Exit state in vitro against exit state in vivo.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Bytes compared.
    pub compared: u64,
    /// Of those, bytes in words that the region changed in vivo.
    #[serde(default)]
    pub changed: u64,
    /// Excluded bytes, by reason.
    pub masked: Vec<LeftOut>,
    /// 8-byte words that differ.
    pub different_words: u64,
    /// Of those, words that read as floating point (double or pair of floats) on both sides, finite. If `typed`, such
    /// that the region stored last as floating point.
    pub floating_words: u64,
    /// Largest relative error of doubles among `floating_words`: |a - b| / max(|a|, |b|), at least a unit in the last place.
    /// Where a word can be read in both ways (not `typed`), the way with the smaller error counts.
    pub largest_relative_error: f64,
    /// Likewise, of floats.
    #[serde(default)]
    pub largest_float_error: f64,
    /// Whether the code reported the types of its stores.
    #[serde(default)]
    pub typed: bool,
    /// The first words that differ.
    pub first: Vec<Difference>,
    /// Whether the region ended the way it did in vivo (returned or unwound).
    pub same_end: bool,
    /// Hash of all words that differ, with their addresses.
    #[serde(skip)]
    pub digest: u64,
}

/// Bytes that a comparison excluded for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The reason: one of [`left_out`], or one of the package.
    pub reason: String,
    /// How many.
    pub bytes: u64,
    /// Of those, bytes that the region changed in vivo, or may have changed where that is not known.
    pub changed: u64,
}

/// Why bytes are excluded from a comparison.
pub mod left_out {
    /// Below the stack pointer at entry, on the thread's own stack.
    pub const DEAD_STACK: &str = "dead stack";
    /// On a stack of the program's own: see `EntryState::frames` of [`crate::capture`].
    pub const OWN_STACK: &str = "frames, or data, on a stack of the program's own";
    /// Code pages that the region wrote.
    pub const CODE: &str = "code that the region wrote";
    /// Written by the preload library.
    pub const PROBE: &str = "probe slot";
    /// Of a library that a replay takes fresh, or of the thread control block.
    pub const LIBRARY: &str = "library or thread state";
    /// Addresses with the same meaning on both sides.
    pub const LIBRARY_ADDRESS: &str = "address of a library variable";
    /// The upper half of a library's address on both sides, beside a half that is the same: what a library's function leaves on the
    /// stack becomes the unset part of a variable that is copied.
    pub const HALF_ADDRESS: &str = "half of a library's address, in what was never set";
    /// Bytes that the captured code itself leaves otherwise where the stack held something else before: see [`super::Unset`].
    pub const UNSET: &str = "copied without having been set";
    /// What the C++ runtime keeps of an exception in flight.
    pub const HANDLER: &str = "handler of the exception";
    /// Blocks of the region heap that are free at exit.
    pub const FREED: &str = "freed memory";
    /// Return addresses, jump tables and constants of code that was compiled again.
    pub const CODE_ADDRESS: &str = "address inside recompiled code or its tables";
    /// Locks, caches of `threadprivate`.
    pub const OPENMP: &str = "state of the OpenMP runtime";
    /// Compared by variable, not by address.
    pub const APART: &str = "thread-local block, compared apart";
    /// The printed text is compared itself.
    pub const STREAM: &str = "buffer of a standard stream";
    /// Text that was printed, where the package does not show what the captured invocation printed.
    pub const TEXT: &str = "printed text that the capture does not have";
    /// Text that was written by system calls, where the system does not let a replay see those.
    pub const UNSEEN: &str = "text that system calls print, which this system does not show";
    /// Addresses in libraries that are other builds here: the same library is all that is known of what they mean.
    pub const OTHER_BUILD: &str = "address in a library that is another build here";
    /// Functions that were registered to run at the end, where the package does not show all of those in vivo.
    pub const REGISTERED: &str = "functions to be run at the end that the capture does not have";

    /// Reasons that cannot hide a result of the program.
    const HARMLESS: [&str; 12] = [
        DEAD_STACK,
        UNSET,
        PROBE,
        LIBRARY,
        LIBRARY_ADDRESS,
        HALF_ADDRESS,
        HANDLER,
        FREED,
        CODE_ADDRESS,
        OPENMP,
        APART,
        STREAM,
    ];

    /// Whether bytes excluded for `reason` cannot carry results of the program.
    pub fn harmless(reason: &str) -> bool {
        HARMLESS.contains(&reason)
    }
}

/// One word that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Its address.
    pub address: u64,
    /// The variable or mapping that it belongs to: `grid+16`, `[heap]`, `[stack]`, `return value`.
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
    /// Every byte that can carry a result was compared and is the same.
    Exact,
    /// Every compared byte is the same, but bytes that the region wrote and that may carry results were excluded.
    Partly,
    /// Only floating-point words differ, within the tolerance.
    Tolerance,
    /// The result is not the original's.
    Different,
    /// Nothing was compared.
    Unchecked,
}

impl Verdict {
    /// All verdicts, the best first.
    pub const ALL: [Self; 5] = [
        Self::Exact,
        Self::Tolerance,
        Self::Partly,
        Self::Unchecked,
        Self::Different,
    ];

    /// Whether it says less good of a result than `other`.
    pub fn is_worse_than(self, other: Self) -> bool {
        let rank = |of: Self| Self::ALL.iter().position(|one| *one == of);
        rank(self) > rank(other)
    }

    /// Whether the result is the original's, as far as it was compared and within the tolerance.
    pub fn is_right(self) -> bool {
        matches!(self, Self::Exact | Self::Tolerance | Self::Partly)
    }

    /// The verdict in one word, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Partly => "partly",
            Self::Tolerance => "tolerance",
            Self::Different => "different",
            Self::Unchecked => "unchecked",
        }
    }
}

/// A filter of system calls (classic BPF) that the runtime installs before the region's first run, so that it can name a call
/// that the sandbox refuses. It traps; the runtime then makes the call itself, with `token` as the sixth argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// Distinguishes the runtime's calls from the region's; not a secret.
    pub token: u64,
    /// Instructions: code, jumps if true and if false, operand.
    pub program: Vec<Statement>,
    /// What it traps.
    pub calls: Vec<GuardedCall>,
}

/// A system call that a [`Guard`] traps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedCall {
    /// Number on this architecture.
    pub number: i64,
    /// Name.
    pub name: String,
    /// Which argument is a path, from 0.
    pub path: Option<u8>,
}
