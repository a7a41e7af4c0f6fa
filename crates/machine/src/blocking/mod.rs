//! Block sizes of kernels, from the measured machine: guided tuning (BlackjackBench, section 6).
//!
//! Pure functions. The paper's constraint m + n + k <= R cannot give its own answers; mn + mk + nk <= R does, with k = 1.

mod dgemm;
mod parameters;
mod sizes;
mod stencil;
#[cfg(test)]
mod tests;

pub use dgemm::{Tile, broadcast_block, dgemm, register_block, square};
pub use parameters::{Parameters, Unknown, operation, streams, vector_bits};
pub use sizes::{Blocking, ELEMENT, Size};
pub use stencil::stencil;
