//! What is to be replayed how.

use crate::kept::pool::Keepers;
use crate::target::Cross;
use cere_arch::target::Target;
use cere_format::build::Ablation;
use cere_format::replay::{ChangedMemory, Operand, Repetitions, Warmup};
use cere_format::verdict::Tolerance;
use cere_sandbox::Sandbox;
use cere_system::events::Events;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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
    /// (see [`crate::plan::warmup`]).
    pub warmup: Option<Warmup>,
    /// What is put into a state of its own after that, before each repetition; see [`crate::operand`]. Repetitions are then never
    /// batched.
    pub operands: Vec<Operand>,
    /// Whether to compare exit states.
    pub compare: bool,
    /// Largest relative errors that are still the verdict `tolerance`.
    pub tolerance: Tolerance,
    /// Longest run, also of a compiler; none: as the time in vivo says ([`crate::limit`]).
    pub timeout: Option<Duration>,
    /// How the teams of OpenMP regions are made.
    pub team: Team,
    /// Copies that run beside a timed replay; none: as many as there were threads beside the region when it was captured, as far as
    /// the machine has processors for them.
    pub beside: Option<u32>,
    /// Rounds in which energy is measured behind the time; none: it is not. No copies run beside the replay then: their energy would
    /// count.
    pub energy: Option<u32>,
    /// Where to replay, when that is not the architecture of the capture.
    pub cross: Option<Cross>,
    /// What the compilers and the replay run in.
    pub sandbox: Sandbox,
}

/// IR in the place of a packaged unit's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedUnit {
    /// The unit's id in the package.
    pub unit: String,
    /// The IR.
    pub ir: PathBuf,
}

/// A replay, and where its parts are.
#[derive(Clone)]
pub struct Options {
    /// What to build and run.
    pub settings: Settings,
    /// Edited units in the place of captured ones ([`crate::bridge`]).
    pub edited: Vec<EditedUnit>,
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
    /// Whether the code lies elsewhere than it would: what a result has of its addresses shows.
    pub elsewhere: bool,
    /// What is taken out of the code; then nothing should be compared.
    pub ablation: Option<Ablation>,
    /// Changes of the memory, to see what it costs; then nothing should be compared.
    pub memory: ChangedMemory,
    /// Hears why something takes long.
    pub events: Events,
}

impl Options {
    /// The architecture that code is made for.
    #[must_use]
    pub fn target(&self) -> Target {
        self.settings
            .cross
            .as_ref()
            .map_or(cere_arch::HERE, |cross| cross.target)
    }
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
