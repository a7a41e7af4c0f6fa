//! The replay generator: an unpacked package and compiler flags become an executable, a time and a verdict.
//!
//! | module | what |
//! |---|---|
//! | [`apart`] | the runtime's names and the program's |
//! | [`check`] | whether a manifest can be what a capture wrote |
//! | [`objects`] | a package to an executable |
//! | [`mod@compile`] | units to objects, under the pass's bind mode |
//! | [`glue`] | what the units need from the captured process, as assembly |
//! | [`link`] | the executable, within reach of the captured image |
//! | [`counters`] | counters of the kernel that measure a replay |
//! | [`operand`] | parts of a codelet's memory whose place in the caches is given |
//! | [`plan`] | the plan that the executable reads |
//! | [`mod@process`] | starts it in the sandbox and reads the outcome |
//! | [`kept`] | processes that keep captured states for replays that follow one another |
//! | [`run`] | what the outcome means |
//! | [`code`] | whether the machine code is the one that ran in vivo |
//! | [`keep`] | all of it in one directory, for someone who wants to read or debug it |

pub mod apart;
pub mod check;
pub mod code;
pub mod compile;
pub mod counters;
pub mod glue;
pub mod keep;
pub mod kept;
pub mod link;
mod memory;
mod named;
mod names;
pub mod objects;
pub mod operand;
pub mod plan;
mod process;
pub mod run;
mod survival;

use cere_format::FormatError;
use cere_format::package::{CapturedFunction, MEMBER_MANIFEST, Manifest};
use cere_format::replay::{
    Comparison, Operand, Preparation, Repetitions, SetAside, Verdict, Warmup,
};
use cere_sandbox::Sandbox;
use cere_toolchain::{CompileError, io};
pub use compile::Code;
pub use kept::Keepers;
pub use objects::{Built, Objects, build, compile};
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Why a replay could not be made or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A file operation, a flag or a tool failed.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The manifest does not parse.
    #[error("the manifest is not valid: {0}")]
    Manifest(serde_json::Error),
    /// The manifest parses and cannot be true.
    #[error(
        "the manifest is not one that a capture writes: {0}; take the package from its source again"
    )]
    Hostile(String),
    /// A shared library is not on this machine.
    #[error(
        "{codelet} needs {libraries}, which this machine does not have in its library directories: install it"
    )]
    Library {
        /// The codelet.
        codelet: String,
        /// Sonames.
        libraries: String,
    },
    /// A page trace was asked for that the package does not have.
    #[error(
        "{0} has no page trace to warm up by: capture it again without --no-trace (`cere capture`), or take --warmup working-set or cold"
    )]
    NoTrace(String),
    /// An operand cannot be put into its state.
    #[error("the operands of {codelet} cannot be placed: {why}")]
    Operand {
        /// The codelet.
        codelet: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Nothing defines a symbol.
    #[error(
        "{codelet} needs {symbols}: neither its libraries nor the captured image define that ({})",
        match other_flags {
            true => "do the flags call for a runtime library that the program was not linked with?",
            false => "a library here is another than where it was captured, or an older cere made it: capture it again",
        }
    )]
    Undefined {
        /// The codelet.
        codelet: String,
        /// Names.
        symbols: String,
        /// Whether other flags or passes than the build's are asked for.
        other_flags: bool,
    },
    /// What the executable reported does not parse.
    #[error("the replay of {codelet} reported what cannot be: {source}")]
    Outcome {
        /// The codelet.
        codelet: String,
        /// What is wrong with it.
        source: FormatError,
    },
    /// Code on the stack, which a replay's stack does not allow.
    #[error(
        "{0} cannot be replayed: a unit of it passes procedures that use variables of the procedure around them (internal \
         procedures of Fortran, nested functions of C), for which the compiler writes code on the stack; a replay's \
         stack holds no code"
    )]
    ExecutableStack(String),
    /// An object could not be read.
    #[error("object {path} cannot be read: {reason}", path = path.display())]
    Object {
        /// The object.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The region's trampoline is in none of the objects.
    #[error("no object defines {0}: the unit's IR does not hold the region")]
    NoRegion(String),
    /// No free addresses near the captured image.
    #[error(
        "no free range of {size:#x} bytes within 2 GiB of the captured image {image} at {start:#x}-{end:#x}"
    )]
    NoRoom {
        /// Bytes needed.
        size: u64,
        /// Image.
        image: String,
        /// Its start.
        start: u64,
        /// Its end.
        end: u64,
    },
    /// The region needs variables that the captured process did not have.
    #[error("the replay of {codelet} does not end as in vivo ({reason}): {how}")]
    Lacks {
        /// The codelet.
        codelet: String,
        /// Which, and why they are not there.
        how: String,
        /// How the exit state is wrong.
        reason: String,
    },
    /// The process that keeps the captured state between replays cannot be started, or ended.
    #[error("the process that keeps the captured state of {codelet} between its replays {how}")]
    Keeper {
        /// The codelet.
        codelet: String,
        /// What is wrong.
        how: String,
    },
    /// The kernel's counters could not be opened in the replay's process, or not be read.
    #[error(
        "the replay of {codelet} cannot be started with the kernel's counters, or they cannot be read: {source}"
    )]
    Counters {
        /// The codelet.
        codelet: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The replay executable did not end in time.
    #[error("the replay of {codelet} ran longer than {seconds} s")]
    Late {
        /// The codelet.
        codelet: String,
        /// What it may take.
        seconds: u64,
    },
    /// The replay executable ended badly.
    #[error("the replay of {codelet} {how}{message}")]
    Run {
        /// The codelet.
        codelet: String,
        /// Exit code or signal.
        how: String,
        /// What it printed to standard error.
        message: String,
    },
}

/// Largest relative errors of floating-point words that are accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Of doubles.
    pub double: f64,
    /// Of floats.
    pub single: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self {
            double: 1e-9,
            single: 1e-5,
        }
    }
}

impl Tolerance {
    /// Whether the errors found are within it.
    fn holds(self, found: &Comparison) -> bool {
        found.largest_relative_error <= self.double && found.largest_float_error <= self.single
    }
}

/// What to build, how often to run it, and what to compare.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Flags after the original code generation flags.
    pub flags: Vec<String>,
    /// An `opt` pipeline instead of the compiler's own.
    pub passes: Option<String>,
    /// Timed repetitions.
    pub repetitions: Repetitions,
    /// State of the caches before each; none: that of the package's page trace, or of a run over itself if it has none
    /// (see [`plan::warmup`]).
    pub warmup: Option<Warmup>,
    /// What is put into a state of its own after that, before each repetition; see [`operand`]. Repetitions are then never
    /// batched.
    pub operands: Vec<Operand>,
    /// Whether to compare exit states.
    pub compare: bool,
    /// Largest relative errors that are still the verdict `tolerance`.
    pub tolerance: Tolerance,
    /// Longest run.
    pub timeout: Duration,
    /// How the teams of OpenMP regions are made.
    pub team: Team,
    /// What the compilers and the replay run in.
    pub sandbox: Sandbox,
}

/// A replay, and where its parts are.
#[derive(Debug, Clone)]
pub struct Options {
    /// What to build and run.
    pub settings: Settings,
    /// Where to leave IR, objects, glue, executable and the commands that make it, if they are wanted.
    pub keep: Option<PathBuf>,
    /// Objects and executables by content.
    pub cache: PathBuf,
    /// The pass plugin.
    pub plugin: PathBuf,
    /// `libcere_runtime.a`.
    pub runtime: PathBuf,
    /// Keep the captured state between replays of one package; none: each replay restores it.
    pub keepers: Option<Arc<Keepers>>,
    /// Reports why something takes long.
    pub announce: Option<fn(&str)>,
}

/// How the teams of OpenMP regions are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Team {
    /// Threads, whatever the region says itself; none: as when it was captured.
    pub threads: Option<u32>,
    /// Variables of the environment for the OpenMP runtime, and their values.
    pub environment: Vec<(String, String)>,
    /// The library that stands for the runtime of the capture.
    pub runtime: Option<PathBuf>,
}

impl Team {
    /// What it says beside the number of threads, in a line; empty if nothing.
    pub fn placement(&self) -> String {
        let variables = self.environment.iter();
        let mut words: Vec<String> = variables
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        words.extend(self.runtime.iter().map(|path| path.display().to_string()));
        words.join(" ")
    }
}

/// Whether the region's machine code is the one that ran in vivo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SameCode {
    /// Equal but for relocated fields.
    Yes,
    /// Different.
    No,
    /// The package does not hold the original code, or the object does not show it.
    Unknown,
}

/// A finished replay.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Replay {
    /// Name of the codelet.
    pub codelet: String,
    /// Flags added.
    pub flags: Vec<String>,
    /// Verdict.
    pub verdict: Verdict,
    /// Why, for people.
    pub reason: String,
    /// Cycles of each repetition that counts, in order.
    pub cycles: Vec<u64>,
    /// Least cycles.
    pub cycles_min: u64,
    /// Median cycles.
    pub cycles_median: u64,
    /// Least seconds.
    pub seconds_min: f64,
    /// Median seconds.
    pub seconds_median: f64,
    /// Ends of the median's confidence interval in seconds, and the probability that it holds the median: at least
    /// [`CONFIDENCE`](cere_format::replay::CONFIDENCE) from 6 repetitions on.
    pub seconds_low: f64,
    /// See above.
    pub seconds_high: f64,
    /// See above.
    pub confidence: f64,
    /// (largest - least) / median.
    pub spread: f64,
    /// Repetitions that do not count.
    pub set_aside: SetAside,
    /// Whether `cycles` are of disturbed repetitions for want of others.
    pub disturbed: bool,
    /// State of the caches before each repetition.
    pub warmup: Warmup,
    /// With the page trace: how long others on the machine leave a line in the caches, in nanoseconds; none: they do not
    /// replace any.
    #[serde(default)]
    pub survival_ns: Option<u64>,
    /// What was then put into a state of its own.
    #[serde(default)]
    pub operands: Vec<operand::Placed>,
    /// Runs that shared one reading of the clock, their state put back in between; 1 unless they are too short for it.
    pub batch: u32,
    /// What people should know of how it was measured: one sentence each.
    pub notes: Vec<String>,
    /// Seconds in vivo, undisturbed.
    pub in_vivo_seconds: Option<f64>,
    /// Whether every repetition ended alike.
    pub repeatable: bool,
    /// Whether the machine code is the original's.
    pub same_code: SameCode,
    /// Functions of the program that may have run as captured machine code, whatever the flags; none if the package
    /// does not list them.
    pub captured_code: Option<Vec<CapturedFunction>>,
    /// Details of the comparison.
    pub comparison: Option<Comparison>,
    /// What preparing the repetitions took.
    pub preparation: Preparation,
    /// Variables that the region used and the captured process did not have.
    pub lacking: Vec<String>,
    /// How many more times than the captured invocation the region asked for the time and the like, where its state differs.
    pub asked_more: u64,
    /// The executable.
    pub executable: PathBuf,
}

/// Reads the manifest of an unpacked package.
pub fn manifest(package: &Path) -> Result<Manifest, ReplayError> {
    let path = package.join(MEMBER_MANIFEST);
    let text = std::fs::read(&path).map_err(io("read", &path))?;
    serde_json::from_slice(&text).map_err(ReplayError::Manifest)
}

/// Seconds of repetitions with reported stores, where threads make the differences vary.
const TYPED_SECONDS: f64 = 5.0;

/// The time limit of a run of code that reports its stores: so many seconds, and so many times the region's time.
const TYPED_LIMIT: (f64, f64) = (60.0, 60.0);

/// How long such a run may take of a region of `seconds`.
fn typed_limit(seconds: f64, options: &Options) -> Duration {
    let limit = TYPED_LIMIT.0 + TYPED_LIMIT.1 * seconds;
    let limit = Duration::try_from_secs_f64(limit.ceil()).unwrap_or(Duration::MAX);
    limit.min(options.settings.timeout)
}

/// Builds and runs.
pub fn replay(package: &Path, options: &Options) -> Result<Replay, ReplayError> {
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let manifest = manifest(&package)?;
    let built = build(&package, &manifest, options)?;
    let mut replay = run::run(&package, &manifest, &built, options)?;
    judge(&package, &manifest, &built, &mut replay, options)?;
    Ok(replay)
}

/// Builds counted code and runs it once, untimed, writing its stream to `stream`; the verdict is on the state that it leaves.
/// `begin` gets the executable before it starts.
pub fn count(
    package: &Path,
    stream: OwnedFd,
    begin: impl FnOnce(&Path) -> Result<(), ReplayError>,
    options: &Options,
) -> Result<Replay, ReplayError> {
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let manifest = manifest(&package)?;
    let objects = objects::objects(&package, &manifest, Code::Counted, options)?;
    let built = objects.link(&package, &manifest, options)?;
    begin(&built.executable)?;
    let mut replay = run::run_counted(&package, &manifest, &built, stream, options)?;
    judge(&package, &manifest, &built, &mut replay, options)?;
    Ok(replay)
}

/// Builds the code as it is timed and runs it while the kernel counts `events`, each in as many invocations as `options` have
/// minimum repetitions, or as fit into their seconds. The replay has no times, and its verdict is on all invocations.
pub fn measure(
    package: &Path,
    events: &[counters::Event],
    options: &Options,
) -> Result<(Replay, counters::Measured), ReplayError> {
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let manifest = manifest(&package)?;
    let built = build(&package, &manifest, options)?;
    let (mut replay, measured) = run::run_measured(&package, &manifest, &built, events, options)?;
    judge(&package, &manifest, &built, &mut replay, options)?;
    Ok((replay, measured))
}

/// Whether the state that a replay ended in can be the original's but for rounding within the tolerance; [`judge`] finds out
/// whether it is.
pub fn may_be_rounding(replay: &Replay, options: &Options) -> bool {
    let within = |c: &Comparison| options.settings.tolerance.holds(c);
    run::may_be_floating(replay, false) && replay.comparison.as_ref().is_some_and(within)
}

/// Decides, with code that reports its stores, whether what differs is rounding, if it can be.
pub fn judge(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    replay: &mut Replay,
    options: &Options,
) -> Result<(), ReplayError> {
    judge_rounding(package, manifest, built, replay, options)?;
    run::has_enough(replay)
}

fn judge_rounding(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    replay: &mut Replay,
    options: &Options,
) -> Result<(), ReplayError> {
    // The code in vivo computes what was computed in vivo: whatever differs has another cause than rounding.
    let captured = manifest.openmp.as_ref().is_some_and(|o| o.threads > 1);
    let several =
        captured || plan::threads(manifest, options.settings.team.threads).is_some_and(|n| n > 1);
    if !(built.other_code || several) || !run::may_be_floating(replay, several) {
        return Ok(());
    }
    // Of threads that run at the same time what differs is not the same in each run, and may not differ in a few.
    let together = plan::threads(manifest, options.settings.team.threads).is_some_and(|n| n > 1);
    let many = (2.0 * TYPED_SECONDS / replay.seconds_median.max(1e-9)).clamp(10.0, 500.0) as u32;
    let runs = match together || !replay.repeatable {
        true => &[10, many][..],
        false => &[1],
    };
    let warmup = match several {
        true => Warmup::WorkingSet,
        false => Warmup::Cold,
    };
    let limit = typed_limit(replay.seconds_median, options);
    let mut once = Options {
        keep: None,
        ..options.clone()
    };
    once.settings.warmup = Some(warmup);
    once.settings.operands.clear();
    once.settings.timeout = limit;
    // A short run needs no message.
    if let Some(announce) = options.announce.filter(|_| replay.seconds_median > 0.1) {
        announce(&format!(
            "{}: words differ that may be floating-point: running code that reports its stores to find out, {} s at most",
            replay.codelet,
            limit.as_secs()
        ));
    }
    let built =
        objects::objects(package, manifest, Code::Typed, &once)?.link(package, manifest, &once)?;
    for runs in runs {
        once.settings.repetitions = Repetitions {
            seconds: TYPED_SECONDS,
            ..Repetitions::exactly(*runs)
        };
        let reported = match run::run(package, manifest, &built, &once) {
            Ok(replay) => replay.comparison,
            Err(ReplayError::Late { seconds, .. }) => {
                run::undecided(replay, seconds);
                break;
            }
            Err(other) => return Err(other),
        };
        let differs = reported.as_ref().is_some_and(|c| c.different_words > 0);
        run::judge_again(replay, reported, options, several);
        if differs {
            break;
        }
    }
    Ok(())
}
