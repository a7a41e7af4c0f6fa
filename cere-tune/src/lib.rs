//! What to try next: pure functions of a seed and of the outcomes that a driver tells. No file is opened here, no process
//! started, no clock read.
//!
//! | question | answer | file |
//! |---|---|---|
//! | what is a region compiled with? | [`Variant`] | `variant.rs` |
//! | what may be tried? | [`Space`], `Space::parse(text)`, `Space::built_in(name)` | `space.rs`, `file.rs`, `spaces/*.toml` |
//! | which orders of passes are like this one? | [`Pipeline`], `parse(text)`, `sample(drop, rounds, rng)` | `pipeline.rs` |
//! | what is tried next? | [`Search`], `propose() -> Option<(number, Variant)>`, `tell(number, ratio)`, `best()` | `search/` |
//! | which of many are the fastest? | `race(runners, left, time) -> places` | `race.rs` |
//! | what does a variant gain, and how sure is that? | `gain(ratios) -> Option<Gain>` | `gain.rs` |
//! | which flags break code? | `suspects(space, regions) -> Vec<Suspect>` | `suspects.rs` |
//! | which region is looked at next? | [`Turns`], an iterator | `turns.rs` |
//!
//! Ratios are times over the time of the code as built: 1 is no change, 0.5 twice as fast.

mod file;
mod gain;
mod pipeline;
mod race;
mod search;
mod space;
mod suspects;
mod turns;
mod variant;

pub use gain::{Gain, gain};
pub use pipeline::{Pipeline, PipelineError};
pub use race::race;
pub use search::{Method, MethodError, Search};
pub use space::{Group, Sequences, Space, SpaceError};
pub use suspects::{Outcome, Suspect, suspects};
pub use turns::Turns;
pub use variant::Variant;
