//! Who leads: the thread whose hooks begin and end captures. That is the main one, but while an invocation of another thread is
//! captured.

use super::status;
use crate::os::{sys, thread};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// Thread pointer of the thread that leads; 0: the main one.
static LEAD: AtomicUsize = AtomicUsize::new(0);
/// Whether the process ends: whoever is first leads, whatever another one does.
static SEIZED: AtomicBool = AtomicBool::new(false);

fn own() -> usize {
    match thread::is_main() {
        true => 0,
        false => thread::pointer(),
    }
}

/// Whether the calling thread leads.
pub fn is_here() -> bool {
    LEAD.load(SeqCst) == own()
}

/// The calling thread, which is at work on the hook's stack, leads from now on. False if memory is closed for another one.
pub fn take() -> bool {
    let free = is_here() || !status::at_work() || SEIZED.load(SeqCst);
    if free {
        LEAD.store(own(), SeqCst);
    }
    free
}

/// The process ends: the calling thread may lead whatever others do.
pub fn seize() {
    SEIZED.store(true, SeqCst);
}

/// The main thread leads again, if the calling one led and captures nothing any more.
pub fn give_back() {
    if !status::captures() {
        let _ = LEAD.compare_exchange(thread::pointer(), 0, SeqCst, SeqCst);
    }
}

/// In a forked child, which has one thread: it leads.
pub fn reset_in_child() {
    LEAD.store(own(), SeqCst);
    SEIZED.store(false, SeqCst);
    sys::HOOK_WORKS.store(false, SeqCst);
}
