//! When a part of the measurement has to end.

use crate::session::Session;
use std::time::{Duration, Instant};

/// When a part of the measurement has to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn within(session: &Session, seconds: f64) -> Self {
        let seconds = seconds.min(session.left()).max(0.0);
        Self(Instant::now() + Duration::from_secs_f64(seconds))
    }

    pub(crate) fn left(&self) -> f64 {
        self.0
            .saturating_duration_since(Instant::now())
            .as_secs_f64()
    }

    /// A part of what is left.
    pub(crate) fn part(&self, share: f64) -> Self {
        Self(Instant::now() + Duration::from_secs_f64(self.left() * share))
    }

    pub(crate) fn over(&self) -> bool {
        Instant::now() >= self.0
    }
}
