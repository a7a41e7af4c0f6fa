//! Per-thread state of the library, in thread-local storage whose first access does not allocate.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

// Initial-exec: the general model's first access in a thread may itself allocate, from within `malloc`.
core::arch::global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".balign 8",
    ".globl cere_local",
    ".hidden cere_local",
    "cere_local:",
    ".zero 40",
    ".popsection",
);

/// State of one thread. Its own signal handlers may run between two accesses; other threads never access it.
#[repr(C)]
pub struct Local {
    /// Calls of the program's allocator in progress. A handler that leaves one by `longjmp` leaves it counted.
    calls: AtomicUsize,
    /// Nesting depth of library code whose calls of libc may allocate.
    library: AtomicUsize,
    /// Number among the threads that the OpenMP runtime started, from 1; 0 for others.
    team: AtomicUsize,
    /// Nesting depth of sections ([`super::section`]).
    pub work: AtomicUsize,
    /// Signals that the library has blocked until the outermost section ends.
    pub waiting: AtomicU64,
}

/// State of the calling thread.
#[inline(always)]
pub fn local() -> &'static Local {
    // SAFETY: the thread's own copy of the symbol above, zero at first, there as long as the thread runs.
    unsafe {
        let at: usize;
        core::arch::asm!("mov {at}, fs:[0]", "add {at}, [rip + cere_local@GOTTPOFF]", at = out(reg) at,
            options(nostack, readonly));
        &*(at as *const Local)
    }
}

/// Counts something in progress until it is dropped.
pub struct Underway(&'static AtomicUsize);

impl Underway {
    #[inline(always)]
    fn of(count: &'static AtomicUsize) -> Underway {
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
        Underway(count)
    }
}

impl Drop for Underway {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(1), Relaxed);
    }
}

/// The thread calls the program's allocator.
#[inline(always)]
pub fn calls_allocator() -> Underway {
    Underway::of(&local().calls)
}

/// Whether the calling thread is in such a call; it then runs a handler.
pub fn in_allocator() -> bool {
    local().calls.load(Relaxed) != 0
}

/// The thread runs library code whose calls of libc may allocate.
#[inline(always)]
pub fn enters_library() -> Underway {
    Underway::of(&local().library)
}

/// Whether the calling thread runs such code.
#[inline(always)]
pub fn in_library() -> bool {
    local().library.load(Relaxed) != 0
}

/// The OpenMP runtime has started the calling thread, as the `number`-th, from 1.
pub fn joins_team(number: usize) {
    local().team.store(number, Relaxed);
}

/// Whether the OpenMP runtime started the calling thread.
#[inline(always)]
pub fn is_of_team() -> bool {
    team_number() != 0
}

/// Its number among the threads of the OpenMP runtime, from 1; 0 for others.
#[inline(always)]
pub fn team_number() -> u32 {
    local().team.load(Relaxed) as u32
}
