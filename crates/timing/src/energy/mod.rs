//! Energy: the processors' own counters (RAPL), as the kernel shows them in the files of its power capping framework.
//!
//! A counter is of a whole package or of its memory, with whatever else runs there and with what it takes while idle. It moves
//! about once a millisecond ([`STEP`]): what is shorter has to be repeated.

mod counter;
mod error;
mod zones;

pub use counter::{Counter, Counters, ENOUGH, Reading, STEP};
pub use error::EnergyError;
pub use zones::{ENV_POWERCAP, POWERCAP};
