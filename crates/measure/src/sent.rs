//! How to replay, in a form that other machines read.

use cere_format::replay::{Operand, Repetitions, Warmup};
use cere_replay::{Settings, Team, Tolerance};
use cere_sandbox::Sandbox;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Settings of replays in the inputs of a job. They have no pipeline and the team of the capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentSettings {
    /// Flags after those of the build.
    pub flags: Vec<String>,
    /// Repetitions of a replay.
    pub repetitions: Repetitions,
    /// State of the caches before each.
    pub warmup: Option<Warmup>,
    /// What is put into a state of its own after that.
    #[serde(default)]
    pub operands: Vec<Operand>,
    /// Largest relative errors of doubles and of floats that are rounding.
    pub tolerance: (f64, f64),
    /// Longest replay in seconds; none: as its time in vivo says.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// Copies beside a replay; none: as its capture says.
    #[serde(default)]
    pub beside: Option<u32>,
    /// Rounds in which energy is measured; none: it is not.
    #[serde(default)]
    pub energy: Option<u32>,
    /// Whether replays and compilers run in the sandbox.
    pub sandbox: bool,
}

impl From<&Settings> for SentSettings {
    fn from(settings: &Settings) -> Self {
        Self {
            flags: settings.flags.clone(),
            repetitions: settings.repetitions,
            warmup: settings.warmup,
            operands: settings.operands.clone(),
            tolerance: (settings.tolerance.double, settings.tolerance.single),
            timeout: settings.timeout.map(|time| time.as_secs_f64()),
            beside: settings.beside,
            energy: settings.energy,
            sandbox: settings.sandbox.is_on(),
        }
    }
}

impl From<&SentSettings> for Settings {
    fn from(sent: &SentSettings) -> Self {
        Self {
            flags: sent.flags.clone(),
            passes: None,
            repetitions: sent.repetitions,
            warmup: sent.warmup,
            operands: sent.operands.clone(),
            compare: true,
            tolerance: Tolerance {
                double: sent.tolerance.0,
                single: sent.tolerance.1,
            },
            timeout: sent
                .timeout
                .map(|time| Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX)),
            team: Team::default(),
            cross: None,
            beside: sent.beside,
            energy: sent.energy,
            sandbox: match sent.sandbox {
                true => Sandbox::new(),
                false => Sandbox::none(),
            },
        }
    }
}
