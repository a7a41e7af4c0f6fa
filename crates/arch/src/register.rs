//! Registers of an interrupted thread.

pub use crate::fault::Fault;
pub use crate::here::register::Registers;
