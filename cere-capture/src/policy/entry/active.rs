//! Whether results of the process are wanted, and their end.

use super::hook;
use crate::os::process;
use crate::policy::profile::booking;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static ACTIVE: AtomicBool = AtomicBool::new(false);
/// The process that results are of.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Results are of the calling process.
pub fn claim_process() {
    PROCESS.store(process::id(), Ordering::Relaxed);
    process::mark();
}

/// Whether results are of the calling process. A child of vfork shares our memory, and ends alone.
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

/// No results are wanted from now on. Whether they were.
pub fn deactivate() -> bool {
    ACTIVE.swap(false, Ordering::AcqRel)
}

/// Finishes what there is of results, and writes it.
pub fn finish_results() {
    booking::finish_profile();
    hook::finish_process();
}
