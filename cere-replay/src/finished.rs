//! What a replay found.

use crate::energy::Energy;
use crate::operand;
use crate::target::Crossed;
use cere_format::package::CapturedFunction;
use cere_format::replay::{Comparison, Preparation, SetAside, Verdict, Warmup};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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

impl SameCode {
    /// Whether it is, if that is known.
    pub fn known(self) -> Option<bool> {
        match self {
            Self::Yes => Some(true),
            Self::No => Some(false),
            Self::Unknown => None,
        }
    }
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
    /// Names the state in which the compared run ended: two replays that end alike have the same one.
    #[serde(default)]
    pub left: u64,
    /// Details of the comparison.
    pub comparison: Option<Comparison>,
    /// Energy, if it was measured.
    #[serde(default)]
    pub energy: Option<Energy>,
    /// What preparing the repetitions took.
    pub preparation: Preparation,
    /// Variables that the region used and the captured process did not have.
    pub lacking: Vec<String>,
    /// How many more times than the captured invocation the region asked for the time and the like, where its state differs.
    pub asked_more: u64,
    /// What is to be known if it ran on another architecture.
    #[serde(default)]
    pub crossed: Option<Crossed>,
    /// The executable.
    pub executable: PathBuf,
}

impl Replay {
    /// The verdict on the code that the times are of, and why: on another architecture that may contract operations which the
    /// verdict's code keeps apart.
    #[must_use]
    pub fn of_timed(&self) -> (Verdict, &str) {
        match self.crossed.as_ref().and_then(Crossed::of_timed) {
            Some(of_timed) => of_timed,
            None => (self.verdict, &self.reason),
        }
    }

    /// Whether an emulator ran it: it has no times then.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        self.crossed
            .as_ref()
            .is_some_and(|crossed| crossed.emulator.is_some())
    }
}
