//! Why an invocation is not captured, where ordinary code finds that out.

use super::beside::Beside;
use crate::engine::state::Obstacle;
use crate::os::files::FileError;
use crate::os::signals::NoHandlers;
use std::fmt::{self, Display, Formatter};

/// Why an invocation is not captured.
#[derive(Debug)]
pub enum Refusal {
    /// Other threads.
    Threads(Beside),
    /// Memory cannot be closed, or not be kept.
    Memory(Obstacle),
    /// The library's handlers cannot be installed.
    Handlers(NoHandlers),
    /// The kernel or another process reaches the program's memory by this.
    Reached(&'static str),
    /// A file cannot be read or written.
    File(FileError),
    /// This function, for this reason.
    Calls(&'static str, String),
    /// This reason.
    Because(&'static str),
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Refusal::Threads(e) => e.fmt(f),
            Refusal::Memory(e) => e.fmt(f),
            Refusal::Handlers(e) => e.fmt(f),
            Refusal::Reached(what) => write!(
                f,
                "the program has {what}: its memory is reached from outside while a capture has it closed"
            ),
            Refusal::File(e) => e.fmt(f),
            Refusal::Calls(function, why) => write!(f, "calls {function}: {why}"),
            Refusal::Because(reason) => f.write_str(reason),
        }
    }
}
