//! What a timing found.

use crate::clock::{Clock, Resolution};
use crate::error::TimerError;
use crate::flush::Flush;
use crate::sizing::FlushArea;
use cere_timing::clock::Usage;
use cere_timing::stats::Spread;

/// How often the kernel ran in one timed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Once.
    Single,
    /// So many times, on copies of the operands that are walked backwards.
    Multiple(usize),
}

/// The time of one invocation of a kernel, with all that it was found from. Times are seconds of one invocation, with
/// the clock's cost subtracted.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The clock.
    pub clock: Clock,
    /// The reported time: the minimum for [`Clock::Wall`], else the median.
    pub seconds: f64,
    /// All samples, in the order in which they were taken.
    pub samples: Vec<f64>,
    /// Minimum, quartiles and maximum.
    pub spread: Spread,
    /// The interval of the median.
    pub interval: (f64, f64),
    /// Probability that the median lies in it: 0.95 or more, less with fewer than 6 samples.
    pub level: f64,
    /// How often the kernel ran in a timed part.
    pub mode: Mode,
    /// Copies of each operand: 1 if it stays in place.
    pub copies: Vec<usize>,
    /// The clock's cost and resolution.
    pub resolution: Resolution,
    /// What an invocation of an empty kernel takes in the same loop. Not subtracted: it overlaps with the kernel.
    pub overhead: f64,
    /// How cold operands were flushed.
    pub flush: Flush,
    /// Areas that were walked, with how their sizes were found.
    pub areas: Vec<FlushArea>,
    /// Page faults and context switches of the calling thread in all timed parts.
    pub usage: Usage,
}

impl Measurement {
    /// Invocations of one timed part.
    pub fn invocations(&self) -> usize {
        match self.mode {
            Mode::Single => 1,
            Mode::Multiple(invocations) => invocations,
        }
    }
}

/// Order statistics of samples.
pub(crate) struct Summary {
    pub(crate) spread: Spread,
    pub(crate) interval: (f64, f64),
    pub(crate) level: f64,
}

impl Summary {
    pub(crate) fn of(samples: &[f64]) -> Result<Self, TimerError> {
        let spread = Spread::of(samples).map_err(|_| TimerError::Samples(0))?;
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high, ranks) =
            cere_timing::stats::interval(&sorted, 0.95).ok_or(TimerError::Samples(0))?;
        Ok(Self {
            spread,
            interval: (low, high),
            level: ranks.level,
        })
    }
}
