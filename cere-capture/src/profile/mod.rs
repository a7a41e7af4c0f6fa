//! Profiles: the times of a run's regions.

mod collect;
mod merge;
mod probes;
mod several;
mod short;

pub use collect::{Collected, Run, collect};
pub use probes::DISPLACED;
pub use several::{Command, sufficient_runs};
