//! Energy: the processors' own counters (RAPL), as the kernel shows them in the files of its power capping framework.
//!
//! A counter is of a whole package or of its memory, with whatever else runs there and with what it takes while idle. It moves
//! about once a millisecond ([`STEP`]): what is shorter has to be repeated.

mod counter;
mod error;
mod zones;

pub use counter::{Counter, Counters, Reading};
pub use error::EnergyError;

/// Seconds between two values of a counter, about.
pub const STEP: f64 = 1e-3;

/// Seconds of work from which on the steps at its two ends are at most 1 % of its energy.
pub const ENOUGH: f64 = 100.0 * STEP;

/// Environment variable that names a directory in the place of [`POWERCAP`]: a stand-in, for tests.
pub const ENV_POWERCAP: &str = "CERE_POWERCAP";

/// Where Linux shows the counters.
pub const POWERCAP: &str = "/sys/class/powercap";
