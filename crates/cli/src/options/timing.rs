//! How replays are warmed up and repeated, for every command that replays.

use super::numbers::seconds;
use anyhow::Result;
use cere_catalogue::bail;
use cere_format::replay::{CacheLevel, Repetitions, Warmup};
use cere_measure::Settings;
use cere_replay::Team;
use cere_sandbox::Sandbox;
use cere_system::console::warning;
use std::sync::Once;
use std::time::Duration;

/// Options about the timed part.
#[derive(Debug, Clone, clap::Args)]
pub struct Timing {
    /// State of the caches before each timed repetition [default: page-trace; working-set without a trace, and for several threads where one was captured]
    #[arg(long, value_name = "STATE")]
    warmup: Option<State>,
    /// With --warmup cold: then read everything once and empty the caches above this one
    #[arg(long, value_name = "CACHE", requires = "warmup")]
    warm_to: Option<Level>,
    /// Timed repetitions, after the untimed ones [default: 10 to 1000, see below]
    #[arg(long, visible_alias = "repetitions", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reps: Option<u32>,
    /// Longest run of the replay in seconds [default: by its time in vivo, 10 or more; 600 where that is not known]
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<f64>,
    /// Copies that run beside the timed replay, on other processors [default: as many as there were threads that computed beside
    /// the region when it was captured]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub beside: Option<u32>,
    /// Run codelets and the compilers without the sandbox: for packages that you trust
    #[arg(long)]
    no_sandbox: bool,
}

/// `--warmup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum State {
    /// Nothing that the codelet may use is in a cache
    Cold,
    /// The codelet has just run over itself
    WorkingSet,
    /// The pages that the program touched last before the invocation were touched in that order, as far back as this
    /// machine's other users leave them in its caches
    PageTrace,
}

/// `--warm-to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    /// The second level
    L2,
    /// The last level
    Llc,
}

/// The sandbox of replays and their compilers; none if it is not wanted. Warns once of each layer that this system refuses.
pub fn sandbox(unwanted: bool) -> Sandbox {
    static WARN: Once = Once::new();
    if unwanted {
        return Sandbox::none();
    }
    let sandbox = Sandbox::new();
    WARN.call_once(|| {
        for warning in sandbox.warnings() {
            warning!("{warning}");
        }
    });
    sandbox
}

/// Rounds in which replays measure energy, if it is `wanted`: then this machine has to show it.
pub fn energy_rounds(wanted: bool) -> Result<Option<u32>> {
    if wanted {
        cere_timing::energy::Counters::find()?;
    }
    Ok(wanted.then_some(cere_replay::ROUNDS))
}

impl Timing {
    /// How often to repeat.
    pub fn repetitions(&self) -> Repetitions {
        self.reps
            .map_or_else(Repetitions::default, Repetitions::exactly)
    }

    /// The same where each codelet is replayed in several rounds: many short ones are better than a long one.
    pub fn in_rounds(&self) -> Repetitions {
        match self.repetitions() {
            given if given != Repetitions::default() => given,
            _ => Repetitions {
                least: 5,
                most: 200,
                precision: 0.005,
                seconds: 0.4,
            },
        }
    }

    /// A replay at the flags of the build, compared with the original's state.
    pub fn settings(&self, team: Team) -> Result<Settings> {
        Ok(Settings {
            flags: Vec::new(),
            passes: None,
            repetitions: self.repetitions(),
            warmup: self.warmup()?,
            operands: Vec::new(),
            compare: true,
            tolerance: Default::default(),
            timeout: self.timeout.map(Duration::from_secs_f64),
            team,
            cross: None,
            beside: self.beside,
            energy: None,
            sandbox: self.sandbox(),
        })
    }

    /// See [`sandbox`].
    pub fn sandbox(&self) -> Sandbox {
        sandbox(self.no_sandbox)
    }

    /// The requested state of the caches.
    pub fn warmup(&self) -> Result<Option<Warmup>> {
        Ok(match (self.warmup, self.warm_to) {
            (Some(State::Cold), Some(Level::L2)) => Some(Warmup::Partial(CacheLevel::L2)),
            (Some(State::Cold), Some(Level::Llc)) => Some(Warmup::Partial(CacheLevel::Llc)),
            (_, Some(_)) => bail!(E5025, "--warm-to goes with --warmup cold"),
            (Some(State::Cold), None) => Some(Warmup::Cold),
            (Some(State::WorkingSet), None) => Some(Warmup::WorkingSet),
            (Some(State::PageTrace), None) => Some(Warmup::PageTrace),
            (None, None) => None,
        })
    }
}
