//! Metric vectors of codelets: numbers that tell them apart, for clustering. None of them needs a hardware counter.
//!
//! | module | what |
//! |---|---|
//! | [`table`] | name, unit, definition and source of each metric |
//! | [`values`] | the values of one codelet |
//! | [`mix`] | shares of instructions, vectors, branches: from exact counts |
//! | [`trace`] | what only the order of execution shows; it feeds the next four |
//! | [`parallelism`] | instruction-level parallelism and dependences |
//! | [`reuse`] | reuse distances |
//! | [`strides`] | distances between successive accesses |
//! | [`footprint`] | lines and pages |
//! | [`model`] | what a model of a processor makes of it (llvm-mca) |
//! | [`vector`] | all of it for a codelet |

mod error;
pub mod footprint;
pub mod mix;
pub mod model;
pub mod parallelism;
pub mod reuse;
pub mod strides;
pub mod table;
pub mod trace;
pub mod values;
pub mod vector;

pub use error::MetricsError;
pub use table::{METRICS, Metric};
pub use values::Values;
pub use vector::{Settings, Vector};
