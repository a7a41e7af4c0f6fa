//! Structure-aware fuzzing without instrumentation: valid structures are changed at random, given their checksums again,
//! and read. A reader succeeds or gives an error; it never panics and stays within bounds of memory and processor time.
//!
//! | module | what |
//! |---|---|
//! | [`random`] | reproducible numbers, mostly at the ends of ranges |
//! | [`change`] | random changes of JSON, binary records and text |
//! | [`package`] | a manifest with every list filled, and packages around any members |
//! | [`noise`] | models of a machine that others share |
//! | [`profile`] | profiles for tests |
//! | [`mod@campaign`] | many runs with limits on memory and time |
//!
//! `CERE_FUZZ_RUNS` is the number of runs of each campaign instead of the few that the tests take, `CERE_FUZZ_SEED` the
//! first seed. A failure names the seed of its run.

#![recursion_limit = "256"]

pub mod built;
pub mod campaign;
pub mod change;
pub mod noise;
pub mod package;
pub mod profile;
pub mod random;

pub use campaign::{Counting, campaign};
pub use random::Random;
