//! The capture in progress as the main thread's hooks and handlers know it, without a turn.

use crate::engine::level::Level;
use crate::engine::status;
use crate::os::section;
use cere_format::abi::RegionDescriptor;

/// Main thread only.
static mut MARK: Option<Mark> = None;

/// A capture in progress as the hook knows it.
#[derive(Clone, Copy)]
pub struct Mark {
    /// Its region.
    pub region: *mut RegionDescriptor,
    /// Index of that among the wanted ones.
    pub wanted: usize,
    /// Which invocation, from 1.
    pub invocation: u64,
    /// Stack pointer at entry.
    pub pointer: usize,
    /// [start, end) of the stack.
    pub stack: (usize, usize),
}

/// Sets the capture in progress. Main thread only.
pub fn note_level(level: Option<&Level>) {
    status::set_captures(level.is_some());
    let mark = level.map(|level| Mark {
        region: level.region,
        wanted: level.wanted,
        invocation: level.invocation,
        pointer: level.entry.stack_pointer as usize,
        stack: level.stack,
    });
    // SAFETY: main thread only.
    unsafe { MARK = mark };
}

/// The capture in progress. Main thread only.
pub fn capture_in_progress() -> Option<Mark> {
    // SAFETY: main thread only.
    unsafe { MARK }
}

/// Whether code with this stack pointer has left the captured invocation, by longjmp: it cannot still run.
pub fn has_left(stack: usize) -> bool {
    capture_in_progress()
        .is_some_and(|l| l.stack.0 <= stack && stack < l.stack.1 && stack > l.pointer)
}

/// Whether code with this stack pointer has left the captured invocation, and that can end now.
pub fn may_abandon(stack: usize) -> bool {
    has_left(stack) && !section::is_interrupted()
}
