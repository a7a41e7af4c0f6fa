//! Measures programs, regions and codelets.

pub mod check;
pub mod decide;
mod fast;
mod lab;
mod linked;
pub mod matching;
mod output;
mod replays;
mod shares;
mod target;
mod trial;
mod vivo;

pub use fast::{least, region_seconds};
pub use lab::{Builds, Lab, Timed};
pub use linked::Linked;
pub use replays::{Replays, Request};
pub use shares::Shares;
pub use target::{Member, Target, between};
pub use trial::{Build, Shown, Trial, join};
pub use vivo::{InVivo, Times, class, threads};
