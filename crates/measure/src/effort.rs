//! How long codes are timed in turns.

use cere_timing::stats::Gain;
use std::time::Instant;

/// How long a region is timed.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Rounds at least.
    pub least: u32,
    /// Rounds at most.
    pub most: u32,
    /// Half the interval's width over the ratio that is narrow enough.
    pub precision: f64,
    /// Seconds after which no further round is begun.
    pub seconds: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            least: 3,
            most: 15,
            precision: 0.005,
            seconds: 0.5,
        }
    }
}

impl Effort {
    /// Whether a ratio is known well enough.
    pub fn is_narrow(&self, found: Option<Gain>) -> bool {
        found.is_some_and(|g| g.level >= 0.95 && (g.high - g.low) / 2.0 <= self.precision * g.ratio)
    }

    /// Whether the time since `began` is over.
    pub fn is_over(&self, began: Instant) -> bool {
        began.elapsed().as_secs_f64() >= self.seconds
    }
}
