//! Whether results of the process are wanted, and their end.

use super::hook;
use crate::os::{aside, process};
use crate::policy::profile::booking;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Id of the process that results belong to.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Results belong to the calling process.
pub fn claim_process() {
    PROCESS.store(process::id(), Ordering::Relaxed);
    process::mark();
}

/// Whether results belong to the calling process. A child of vfork shares its memory, and ends alone.
pub fn is_this_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == process::id()
}

/// Results are wanted.
pub fn activate() {
    ACTIVE.store(true, Ordering::Release);
}

/// Whether results are wanted.
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Acquire)
}

/// No results are wanted from now on. Returns whether they were.
pub fn deactivate() -> bool {
    ACTIVE.swap(false, Ordering::AcqRel)
}

/// Finishes and writes the results.
pub fn finish_results() {
    booking::finish_profile();
    hook::finish_process();
    aside::end();
}
