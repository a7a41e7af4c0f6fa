//! Measures programs, regions and codelets.

pub mod check;
pub mod decide;
pub mod edits;
mod effort;
pub mod emulated;
mod fast;
mod goal;
mod lab;
mod linked;
pub mod matching;
mod output;
mod replays;
mod sent;
mod shares;
pub mod sides;
mod target;
mod trial;
mod turns;
pub mod vivo;

pub use cere_replay::Settings;
pub use effort::{Effort, Extent, Fitting, study_seconds};
pub use fast::{fast_seconds, minimum, region_seconds};
pub use goal::Goal;
pub use lab::{Builds, Lab, Measure, Timed};
pub use linked::{Linked, RegionTimes};
pub use replays::Replays;
pub use sent::SentSettings;
pub use shares::Shares;
pub use target::{Member, Target};
pub use trial::{Build, Ranks, Runs, Trial};
pub use turns::{Bench, Turns, TurnsError};
pub use vivo::{InVivo, Times, class, threads};
