//! Exact counts of codelets: instructions, floating-point work, memory accesses, and the traffic that simulated caches make
//! of them. No clock and no hardware counter is involved, so the numbers are the same on every machine; what the hardware
//! counts can be read beside them ([`hardware`]).
//!
//! | module | what |
//! |---|---|
//! | [`class`] | what an instruction does, from LLVM's name of it |
//! | [`image`] | the descriptions in an executable |
//! | [`assembly`] | the text of the machine code, by blocks |
//! | [`mca`] | asks llvm-mca |
//! | [`stream`] | what counted code writes when it runs |
//! | [`tally`] | how often each piece of code ran |
//! | [`accesses`] | the memory that it reached |
//! | [`counts`] | the results |
//! | [`codelet`] | counts a codelet |
//! | [`hardware`] | the processor's own counters beside them |
//! | [`topdown`] | where the processor's slots go, by those counters |
//! | [`vivo`] | counts invocations inside the program |
//! | [`fidelity`] | compares the two |
//! | [`modelled`] | cycles of a codelet on another processor, by llvm-mca |
//! | [`metrics`] | vectors of metrics, for clustering |
//! | [`listing`] | machine code beside its source, with executions |

pub mod accesses;
pub mod assembly;
pub mod class;
pub mod codelet;
pub mod counts;
mod error;
pub mod fidelity;
pub mod hardware;
pub mod image;
pub mod listing;
pub mod mca;
pub mod metrics;
pub mod modelled;
pub mod stream;
pub mod tally;
pub mod topdown;
pub mod vivo;

pub use codelet::{Settings, count};
pub use counts::Counts;
pub use error::CountError;
