//! Sections: the library works in a thread of the program, outside of its hooks and handlers. It holds its locks there, or
//! changes what hooks and handlers use.
//!
//! A signal that arrives in a section waits, blocked, until the section ends: the end of a capture needs those locks, and so
//! do regions that a handler of the program enters. While the library's handlers are not installed, a handler of the program
//! may interrupt a section. Hooks check for that ([`is_interrupted`]).

use super::errno::keep_errno;
use super::local::{self, local};
use super::{sys, thread};
use libc::{siginfo_t, ucontext_t};
use std::sync::atomic::{AtomicBool, Ordering, Ordering::Relaxed, compiler_fence};

/// The calling thread is in a section until it is dropped.
pub struct Section(());

/// Begins a section.
#[inline(always)]
pub fn enter_section() -> Section {
    let work = &local().work;
    work.store(work.load(Relaxed).wrapping_add(1), Relaxed);
    compiler_fence(Ordering::SeqCst);
    Section(())
}

impl Drop for Section {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        let local = local();
        let left = local.work.load(Relaxed).wrapping_sub(1);
        local.work.store(left, Relaxed);
        if left == 0 && local.waiting.load(Relaxed) != 0 {
            unblock_waiting();
        }
    }
}

/// Lets the waiting signals arrive.
#[cold]
fn unblock_waiting() {
    let waiting = local().waiting.swap(0, Relaxed);
    let (how, set) = (libc::SIG_UNBLOCK as usize, &raw const waiting as usize);
    let arguments = [how, set, 0, 8, 0, 0];
    // SAFETY: a word of eight bytes. None of these signals was blocked when it arrived.
    unsafe { sys::call(libc::SYS_rt_sigprocmask, arguments) };
}

/// In a handler or a hook: whether it interrupts a section.
#[inline(always)]
pub fn is_interrupted() -> bool {
    local().work.load(Relaxed) != 0
}

/// In a handler that interrupts a section: its signal arrives again when the section ends.
///
/// # Safety
/// `info` and `context` are the handler's.
pub unsafe fn postpone_signal(signal: i32, info: *mut siginfo_t, context: &mut ucontext_t) {
    let waiting = &local().waiting;
    waiting.store(waiting.load(Relaxed) | sys::signal_bit(signal), Relaxed);
    // SAFETY: the kernel's records, which the handler was given.
    unsafe {
        *(&raw mut context.uc_sigmask).cast::<u64>() |= sys::signal_bit(signal);
        thread::send_again(signal, info);
    }
}

/// In a handler: drops waiting signals that only the library's handlers use. They interrupt no handler.
pub fn forget_signals(signals: u64) {
    let waiting = &local().waiting;
    if waiting.load(Relaxed) & signals == 0 {
        return;
    }
    waiting.store(waiting.load(Relaxed) & !signals, Relaxed);
    let (set, at_once) = (&raw const signals as usize, [0i64; 2]);
    let arguments = [set, 0, at_once.as_ptr() as usize, 8, 0, 0];
    // SAFETY: a word of eight bytes, and a time.
    while unsafe { sys::call(libc::SYS_rt_sigtimedwait, arguments) } > 0 {}
}

/// Runs library code whose calls of libc may allocate.
pub fn in_library<T>(work: impl FnOnce() -> T) -> T {
    let _section = enter_section();
    let _inside = local::enters_library();
    work()
}

/// The same for hooks and handlers, which leave errno as it is.
pub fn unnoticed<T>(work: impl FnOnce() -> T) -> T {
    keep_errno(|| in_library(work))
}

/// A lock whose holder is in a section: no handler ends it or makes it wait. A thread that waits for the lock is in no
/// section, so that its handlers can end what the holder waits for.
pub struct Lock(AtomicBool);

impl Lock {
    /// A lock that nobody holds.
    pub const fn new() -> Lock {
        Lock(AtomicBool::new(false))
    }

    /// Runs `work` while no other thread does.
    pub fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        loop {
            let section = enter_section();
            if !self.0.swap(true, Ordering::Acquire) {
                let result = work();
                self.0.store(false, Ordering::Release);
                return result;
            }
            drop(section);
            std::hint::spin_loop();
        }
    }

    /// In a forked child: its one thread does not hold the lock.
    pub fn forked(&self) {
        self.0.store(false, Ordering::Release);
    }
}
