//! Time: the clock, and what its readings say.
//!
//! | module | what |
//! |---|---|
//! | [`clock`] | the time stamp counter, serialised, with its cost and frequency |
//! | [`area`] | memory of probes, in huge or small pages; taking lines out of caches |
//! | [`energy`] | the processors' counters of energy |
//! | [`survival`] | how long others leave a line in the caches |
//! | [`stats`] | pure functions: medians, intervals, comparisons in turns, races, ranks |

pub mod area;
pub mod clock;
pub mod energy;
pub mod stats;
pub mod survival;
