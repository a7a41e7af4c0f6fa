//! The capture in progress as the captured thread's hooks and handlers know it, without a turn.

use crate::engine::level::Level;
use crate::engine::status;
use crate::os::{section, thread};
use cere_format::abi::RegionDescriptor;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Used by the thread that [`OWNER`] names alone.
static mut MARK: Option<Mark> = None;
/// Thread pointer of the captured thread; 0: nothing is captured.
static OWNER: AtomicUsize = AtomicUsize::new(0);

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

/// Sets the capture in progress, of the calling thread, which leads.
pub fn note_level(level: Option<&Level>) {
    OWNER.store(0, SeqCst);
    let mark = level.map(|level| Mark {
        region: level.region,
        wanted: level.wanted,
        invocation: level.invocation,
        pointer: level.entry.stack_pointer as usize,
        stack: level.stack,
    });
    // SAFETY: the lead alone gets here, and no other thread reads it: the owner is this thread or none.
    unsafe { MARK = mark };
    if level.is_some() {
        OWNER.store(thread::pointer(), SeqCst);
    }
    status::set_captures(level.is_some());
}

/// The capture in progress, of the calling thread.
pub fn capture_in_progress() -> Option<Mark> {
    // SAFETY: the owner's own, which nobody else changes while it captures.
    let mark = || unsafe { MARK };
    (OWNER.load(SeqCst) == thread::pointer()).then(mark)?
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
