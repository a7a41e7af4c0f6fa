//! Caches and TLBs, simulated: a stream of memory accesses becomes hits, misses and traffic. No hardware counter is
//! used, and two runs with the same input count the same on every machine.
//!
//! ```
//! use cere_memory::{Access, Geometry, Hierarchy, Options};
//!
//! let geometry = Geometry::named("zen3").unwrap();
//! let mut memory = Hierarchy::new(&geometry, &Options::default())?;
//! for line in 0..1000 {
//!     memory.access(0, Access::load(64 * line, 8));
//!     memory.access(0, Access::load(64 * line + 8, 8));
//! }
//! let counters = memory.counters();
//! assert_eq!(counters.levels[0].misses(), 1000);
//! assert_eq!(counters.levels[0].hits(), 1000);
//! assert_eq!(counters.memory.bytes_read, 64_000);
//! # Ok::<(), cere_memory::GeometryError>(())
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`geometry`] | levels and TLBs: built in, of this machine, from a file; what is refused |
//! | [`options`] | what is chosen for one simulation: cores, replacement, frames, sampling, prefetcher |
//! | [`hierarchy`] | the simulator: [`Hierarchy`] |
//! | [`counters`] | the results |
//!
//! The simulator has no global state, does no input or output and reserves all memory in [`Hierarchy::new`]: it can
//! run in a process whose memory it counts. The model is described in `docs/design/memory.md`.

mod access;
mod cache;
mod combining;
pub mod counters;
pub mod geometry;
pub mod hierarchy;
pub mod options;
mod pages;
mod sample;
mod streams;
mod tlb;

pub use access::{Access, Kind};
pub use counters::Counters;
pub use geometry::{Geometry, GeometryError};
pub use hierarchy::Hierarchy;
pub use options::Options;
