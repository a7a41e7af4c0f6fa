//! x86-64.

pub mod call;
pub mod counter;
pub mod counting;
pub mod feature;
pub mod float;
pub mod jump;
pub mod lines;
pub mod loops;
pub mod questions;
pub mod register;
pub mod switch;
pub mod thread;

use crate::target::Target;

/// The architecture that this is compiled for.
pub const HERE: Target = Target::X86_64;
