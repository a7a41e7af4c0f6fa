//! Profiles: the times of a run's regions.

mod collect;
mod merge;
mod probes;
mod ranks;
mod several;
mod short;

pub use collect::{Collected, Run, collect};
pub use probes::DISPLACED;
pub use ranks::Which;
pub use several::{Command, sufficient_runs};
