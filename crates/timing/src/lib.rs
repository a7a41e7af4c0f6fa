//! Time: the clock, and what its readings say.
//!
//! | module | what |
//! |---|---|
//! | [`clock`] | the time stamp counter, serialised, with its cost and frequency |
//! | [`stats`] | pure functions: medians, intervals, comparisons in turns, races, ranks |

pub mod clock;
pub mod stats;
