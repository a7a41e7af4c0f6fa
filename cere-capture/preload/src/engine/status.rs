//! What any thread may ask about captures at any time: the answers are old where it has no turn.

use crate::os::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static PREPARED: AtomicBool = AtomicBool::new(false);
static AT_WORK: AtomicBool = AtomicBool::new(false);
static CAPTURES: AtomicBool = AtomicBool::new(false);
static PAUSED: AtomicUsize = AtomicUsize::new(0);
static PAUSES: AtomicUsize = AtomicUsize::new(0);

/// Whether captures are prepared.
#[inline(always)]
pub fn prepared() -> bool {
    PREPARED.load(Ordering::Acquire) && !process::is_copy()
}

/// Sets [`prepared`].
pub fn set_prepared(yes: bool) {
    PREPARED.store(yes, Ordering::Release);
}

/// Whether memory is to be closed.
#[inline(always)]
pub fn at_work() -> bool {
    prepared() && AT_WORK.load(Ordering::Acquire)
}

/// Sets [`at_work`].
pub fn set_at_work(yes: bool) {
    AT_WORK.store(yes, Ordering::Release);
}

/// Whether a capture is in progress.
#[inline(always)]
pub fn captures() -> bool {
    CAPTURES.load(Ordering::Relaxed)
}

/// Sets [`captures`].
pub fn set_captures(yes: bool) {
    CAPTURES.store(yes, Ordering::Relaxed);
}

/// Whether the captured invocation has paused for a call that a replay answers: memory is open, and what the call does is not the
/// invocation's.
#[inline(always)]
pub fn paused() -> bool {
    paused_at() != 0
}

/// The stack pointer of that call; 0: there is none.
#[inline(always)]
pub fn paused_at() -> usize {
    PAUSED.load(Ordering::Relaxed)
}

/// Sets [`paused_at`].
pub fn set_paused(stack: usize) {
    PAUSED.store(stack, Ordering::Relaxed);
    PAUSES.fetch_add(usize::from(stack != 0), Ordering::Relaxed);
}

/// How often an invocation has paused.
pub fn pauses() -> usize {
    PAUSES.load(Ordering::Relaxed)
}

/// Whether memory is closed for the page trace alone: no capture is in progress.
pub fn traces_alone() -> bool {
    prepared() && !captures()
}
