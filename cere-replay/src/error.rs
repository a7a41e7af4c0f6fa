//! Why a replay could not be made or run.

use cere_format::FormatError;
use cere_toolchain::CompileError;
use std::path::PathBuf;

/// Why a replay could not be made or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A file operation, a flag or a tool failed.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The package does not hold a manifest that can be read.
    #[error(transparent)]
    Package(#[from] FormatError),
    /// JSON that the pass or the runtime reads cannot be written, or that of the pass not be read.
    #[error(
        "JSON between the parts of a replay is not valid: {0}; build or install all of CERE again"
    )]
    Json(serde_json::Error),
    /// The manifest parses and cannot be true.
    #[error(
        "the manifest is not one that a capture writes: {0}; take the package from its source again"
    )]
    Hostile(String),
    /// A shared library is not on this machine.
    #[error(
        "{codelet} needs {libraries}, which this machine does not have in its library directories{}",
        target.as_ref().map_or(": install it".to_owned(), |target| format!(
            " for {target}: install it, or name a directory that has it with --sysroot"
        ))
    )]
    Library {
        /// The codelet.
        codelet: String,
        /// Sonames.
        libraries: String,
        /// The architecture, if it is another than this machine's.
        target: Option<String>,
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
        why: OperandError,
    },
    /// A function that the region needs cannot run on the target.
    #[error("{codelet} cannot be replayed on {target}: {why}")]
    Crossing {
        /// The codelet.
        codelet: String,
        /// The target.
        target: String,
        /// Why not.
        why: String,
    },
    /// The target's system is not there.
    #[error(
        "{} has no {loader}: the loader and the libraries of {target} are not there; install them (Debian: libc6-arm64-cross, \
         libc6-riscv64-cross), or name the directory that has them with --sysroot",
        .root.display()
    )]
    NoSystem {
        /// The target.
        target: String,
        /// Where they were looked for.
        root: PathBuf,
        /// The loader.
        loader: String,
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
    /// Nothing in an edited unit stands for the region.
    #[error("{0}")]
    NotBridged(String),
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
    /// Energy cannot be measured.
    #[error(transparent)]
    Energy(#[from] cere_timing::energy::EnergyError),
    /// The replay executable did not end in time.
    #[error("the replay of {codelet} ran longer than {seconds} s{why}")]
    Late {
        /// The codelet.
        codelet: String,
        /// What it may take.
        seconds: u64,
        /// Where that comes from.
        why: String,
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

/// Why an operand cannot be put into a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperandError {
    /// There is no state.
    #[error("{0} has no state: NAME=STATE, with {STATES}")]
    NoState(String),
    /// There is no name.
    #[error("{0} names no operand: NAME=STATE")]
    NoName(String),
    /// The state is none that there is.
    #[error("{state} is no state of {name}: {STATES}")]
    State {
        /// The operand.
        name: String,
        /// What it was to be in.
        state: String,
    },
    /// The codelet does not have it.
    #[error("it has no operand {name}{near}: --operand list prints what can be named")]
    Unknown {
        /// As it was named.
        name: String,
        /// Names that resemble it, in parentheses; empty if none does.
        near: String,
    },
    /// The name is that of several.
    #[error("{name} names {} operands: say which with {}", exact.len(), exact.join(" or "))]
    Several {
        /// As they were named.
        name: String,
        /// The name of each alone.
        exact: Vec<String>,
    },
    /// It was named before.
    #[error("{0} is named twice")]
    Twice(String),
    /// It was in no memory that the region touches.
    #[error(
        "{0} was not in memory at entry, or the invocation did not touch its pages: it is in no cache, and the region does \
         not need it; leave it out"
    )]
    Untouched(String),
    /// A line would have to be in two states.
    #[error(
        "{one} and {other} {how}, and a line is in one state only: give both the same, or name one of them"
    )]
    Shared {
        /// An operand.
        one: String,
        /// Another one.
        other: String,
        /// How they lie.
        how: &'static str,
    },
}

/// The states by name.
const STATES: &str = "warm, l2, llc or cold";
