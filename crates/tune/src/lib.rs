//! Searches compiler flags and passes for regions on their codelets. The next proposal is a pure function of a seed and the
//! outcomes so far; only [`tuning`] opens files, starts processes and reads clocks.
//!
//! | question | answer | file |
//! |---|---|---|
//! | what is a region compiled with? | [`Variant`] | `variant.rs` |
//! | what may be tried? | [`Space`], `Space::parse(text)`, `Space::built_in(name)` | `space.rs`, `file.rs`, `spaces/*.toml` |
//! | which orders of passes are like this one? | [`Pipeline`], `parse(text)`, `sample(drop, rounds, rng)` | `pipeline.rs` |
//! | what is tried next? | [`Search`], `propose() -> Option<(number, Variant)>`, `tell(number, ratio)`, `best()` | `search/` |
//! | where does a search start on a measured machine? | `starts(machine) -> Vec<Start>`, `Search::starting_with` | `guided.rs` |
//! | which flags break code? | `suspects(space, regions) -> Vec<Suspect>` | `suspects.rs` |
//! | which region gets the next evaluation? | [`Turns`], an iterator | `turns.rs` |
//! | which lines of source may do what flags do? | [`advice`] | `advice/` |
//! | how is each region linked with its own flags? | [`hybrid`] | `hybrid/` |
//!
//! Ratios are times over the time of the code as built: 1 is no change, 0.5 twice as fast.

pub mod advice;
pub mod choices;
mod file;
mod guided;
pub mod hybrid;
mod pipeline;
mod search;
mod space;
mod suspects;
pub mod tuning;
mod turns;

pub use cere_toolchain::Variant;
pub use choices::{Choices, Chosen};
pub use guided::{Start, starts};
pub use pipeline::{Pipeline, PipelineError};
pub use search::{AWAITED, Method, MethodError, Search};
pub use space::{Fault, Group, Sequences, Space, SpaceError};
pub use suspects::{Outcome, Suspect, suspects};
pub use turns::Turns;
