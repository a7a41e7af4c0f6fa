//! The gate before closed memory. While memory is closed, a thread of the program that touches it waits in the handler until it
//! is open again; so does one that makes a system call: the kernel takes closed memory for none at all.
//!
//! A thread that blocks the signal of faults dies of one. libc blocks it where threads start and end and processes
//! fork: threads pass the gate there, which is barred while memory is closed.

use super::status;
use crate::os::signals::NUDGE;
use crate::os::{local, process, sys, thread};
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicUsize, Ordering, Ordering::SeqCst,
};

/// Seconds that another thread waits before the capture is given up.
const PATIENCE: i64 = 10;

static CLOSED: AtomicBool = AtomicBool::new(false);
/// Counts how often memory was opened: threads wait for it to change.
static OPENED: AtomicU32 = AtomicU32::new(0);
/// Thread pointer and number of the thread that the last capture began in.
static CAPTURED: (AtomicUsize, AtomicI32) = (AtomicUsize::new(0), AtomicI32::new(0));
/// Whether the gate is barred.
static BARRED: AtomicBool = AtomicBool::new(false);
/// Whether system calls of the other threads are held: 1, or let through: 0.
static HELD: AtomicU8 = AtomicU8::new(0);
/// Threads in the gate, or on their way from their creation to the list.
static PASSING: AtomicUsize = AtomicUsize::new(0);

/// Enters the gate, waits before it while it is barred. False if the calling thread has no need to: memory is closed
/// by it alone, or by nobody.
pub fn pass() -> bool {
    if !waits() {
        return false;
    }
    loop {
        PASSING.fetch_add(1, SeqCst);
        let count = OPENED.load(SeqCst);
        if !BARRED.load(SeqCst) {
            return true;
        }
        PASSING.fetch_sub(1, SeqCst);
        if !await_opening(count, &[PATIENCE, 0]) && BARRED.load(SeqCst) {
            nudge_captured();
        }
    }
}

/// Whether the calling thread is one that waits until memory is open: neither the captured one nor of its team.
fn waits() -> bool {
    status::prepared() && !thread::is_main() && !local::is_of_team()
}

/// The calling thread is through, if `passing`: if [`pass`] said so.
pub fn passed(passing: bool) {
    if passing {
        PASSING.fetch_sub(1, SeqCst);
    }
}

/// A thread that the calling one is about to start passes as well.
pub fn pass_another() {
    PASSING.fetch_add(1, SeqCst);
}

/// Whether threads are in the gate.
pub fn is_occupied() -> bool {
    PASSING.load(SeqCst) != 0
}

/// Bars the gate until memory is [`memory_opened`].
pub fn bar_gate() {
    BARRED.store(true, SeqCst);
}

/// Holds the system calls that other threads begin from now on, until memory is [`memory_opened`].
pub fn hold_calls() {
    HELD.store(1, SeqCst);
}

/// Has the kernel report the calling thread's system calls, so that they can be held. False if it does not.
pub fn report_calls() -> bool {
    sys::dispatch_calls(Some(HELD.as_ptr())) == 0
}

/// A capture begins in the calling thread.
pub fn set_captured() {
    CAPTURED.0.store(thread::pointer(), Ordering::Relaxed);
    CAPTURED.1.store(thread::id(), Ordering::Relaxed);
}

/// Runs `work` where memory is not closed, from a thread that is not the captured one.
pub fn in_gate<T>(work: impl FnOnce() -> T) -> T {
    let passing = pass();
    let result = work();
    passed(passing);
    result
}

/// The calling thread is about to fork.
pub unsafe extern "C" fn before_fork() {
    pass();
}

/// The calling thread has forked.
pub unsafe extern "C" fn after_fork() {
    passed(waits());
}

/// Whether the calling thread is the one that the last capture began in.
pub fn is_captured() -> bool {
    thread::pointer() == CAPTURED.0.load(Ordering::Relaxed)
}

/// Number of that thread.
pub fn captured_id() -> usize {
    CAPTURED.1.load(Ordering::Relaxed) as usize
}

/// In a handler of another thread, which is about to make a system call: waits until memory is open.
pub fn await_calls() {
    loop {
        let count = OPENED.load(SeqCst);
        if HELD.load(SeqCst) == 0 {
            return;
        }
        if !await_opening(count, &[PATIENCE, 0]) {
            nudge_captured();
        }
    }
}

/// Memory is about to be closed.
pub fn memory_closes() {
    CLOSED.store(true, Ordering::Release);
}

/// A forked child has one thread.
pub fn reset_in_child() {
    HELD.store(0, SeqCst);
    CLOSED.store(false, Ordering::Release);
    BARRED.store(false, SeqCst);
    PASSING.store(0, SeqCst);
}

/// Memory is open: threads that wait go on.
pub fn memory_opened() {
    HELD.store(0, SeqCst);
    CLOSED.store(false, Ordering::Release);
    BARRED.store(false, SeqCst);
    OPENED.fetch_add(1, Ordering::Release);
    let at = OPENED.as_ptr() as usize;
    let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: wakes whoever waits on the word.
    unsafe { sys::call(libc::SYS_futex, [at, wake, i32::MAX as usize, 0, 0, 0]) };
}

/// In a handler of another thread: waits until memory is open.
pub fn await_memory() {
    let count = OPENED.load(Ordering::Acquire);
    if !CLOSED.load(Ordering::Acquire) {
        return;
    }
    if !await_opening(count, &[PATIENCE, 0]) {
        nudge_captured();
    }
}

/// Waits until [`OPENED`] is no longer `count`; false if that takes longer than `patience`.
fn await_opening(count: u32, patience: &[i64; 2]) -> bool {
    let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let arguments = [
        OPENED.as_ptr() as usize,
        wait,
        count as usize,
        patience.as_ptr() as usize,
        0,
        0,
    ];
    // SAFETY: waits on the word.
    let result = unsafe { sys::call(libc::SYS_futex, arguments) };
    result != -(libc::ETIMEDOUT as isize) || OPENED.load(Ordering::Acquire) != count
}

/// Has the captured thread give up.
pub fn nudge_captured() {
    // SAFETY: a signal that the captured thread's handler takes, or nobody.
    unsafe {
        let process = process::id() as usize;
        let captured = CAPTURED.1.load(Ordering::Relaxed) as usize;
        sys::call(
            libc::SYS_tgkill,
            [process, captured, NUDGE as usize, 0, 0, 0],
        );
    }
}
