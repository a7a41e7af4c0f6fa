//! The calling thread, the main one, and signals to threads.

use super::{process, sys};
pub use cere_inside::call::thread_pointer as pointer;
use libc::siginfo_t;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Control block of the main thread; 0 before [`begin_main`].
static MAIN: AtomicUsize = AtomicUsize::new(0);

/// The calling thread's number in the kernel.
pub fn id() -> i32 {
    // SAFETY: no arguments.
    unsafe { sys::call(libc::SYS_gettid, [0; 6]) as i32 }
}

/// The calling thread is the main one: the one that the library starts in.
pub fn begin_main() {
    MAIN.store(pointer(), Ordering::Relaxed);
}

/// Control block of the main thread.
pub fn main_pointer() -> usize {
    MAIN.load(Ordering::Relaxed)
}

/// Whether the calling thread is the main one.
pub fn is_main() -> bool {
    main_pointer() == pointer()
}

/// Gives a signal to a thread of this process, with this record of it.
///
/// # Safety
/// `info` is a record of this signal.
pub unsafe fn send(thread: usize, signal: i32, info: *mut siginfo_t) {
    let process = process::id() as usize;
    let arguments = [process, thread, signal as usize, info as usize, 0, 0];
    // SAFETY: a record of this signal, which the kernel copies.
    unsafe { sys::call(libc::SYS_rt_tgsigqueueinfo, arguments) };
}

/// Gives the signal to the calling thread again, whose disposition may be another now.
///
/// # Safety
/// `info` is a record of this signal.
pub unsafe fn send_again(signal: i32, info: *mut siginfo_t) {
    // SAFETY: a record of this signal.
    unsafe { send(id() as usize, signal, info) };
}
