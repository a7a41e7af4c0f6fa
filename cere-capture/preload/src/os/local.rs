//! Per-thread state of the library, in thread-local storage whose first access does not allocate.

use super::symbols;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

// Initial-exec: the general model's first access in a thread may itself allocate, from within `malloc`.
core::arch::global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".balign 8",
    ".globl cere_local",
    ".hidden cere_local",
    "cere_local:",
    ".zero 112",
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
    /// Number among the threads that were started, those of teams aside, from 1; 0 if it is not known.
    pub number: AtomicUsize,
    /// Address of its block in a profile; 0 and 1: it has none.
    pub block: AtomicUsize,
    /// Address of the byte by which its system calls are held while others are captured; 0: they are not.
    pub held: AtomicUsize,
    /// Stack pointer of the code that its handler interrupts which waits for open memory; 0: none does.
    pub interrupted: AtomicUsize,
    /// Its signal mask while its hook works.
    pub mask: AtomicU64,
    /// Whether its hook could not work, because memory is closed for another thread.
    pub put_off: AtomicUsize,
    /// Reason of a nudge for its own handler ([`leave_reason`]): a number, and a text's address and length.
    reason: [AtomicUsize; 3],
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

/// Stack pointer of the code that a waiting handler of the thread with this pointer interrupts; 0: it is in none.
///
/// # Safety
/// The thread has started, and does not end meanwhile.
pub unsafe fn interrupted_in(pointer: usize) -> usize {
    let own = local();
    let distance = super::thread::pointer().wrapping_sub((&raw const own.interrupted) as usize);
    // SAFETY: static thread-local storage lies at the same distance from the pointer in every thread.
    unsafe { (*(pointer.wrapping_sub(distance) as *const AtomicUsize)).load(Relaxed) }
}

/// Distance from the thread pointer, and size, of the area of restartable sequences that the C library has registered (glibc 2.35);
/// the size is 0 if it has none.
static RESTARTABLE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Asks the C library for that area. At start: later another thread may hold the loader's lock.
pub fn find_restartable() {
    /// Bytes that Linux registers at least.
    const LEAST: usize = 32;
    let [offset, size] = [c"__rseq_offset", c"__rseq_size"].map(symbols::find_default);
    if offset == 0 || size == 0 {
        return;
    }
    // SAFETY: the C library's variables of these names: a `ptrdiff_t` and an `unsigned int`, set before any constructor runs.
    let (offset, size) = unsafe { (*(offset as *const usize), *(size as *const u32) as usize) };
    let size = if size == 0 { 0 } else { size.max(LEAST) };
    for (word, value) in RESTARTABLE.iter().zip([offset, size]) {
        word.store(value, Relaxed);
    }
}

/// [start, end) of what the kernel writes in the thread with this pointer when that moves to another processor.
pub fn restartable_area(pointer: usize) -> (usize, usize) {
    let [offset, size] = [0, 1].map(|place: usize| RESTARTABLE[place].load(Relaxed));
    let start = pointer.wrapping_add(offset);
    (start, start + size)
}

/// Leaves a reason for the calling thread's handler of a nudge.
pub fn leave_reason(number: usize, text: &'static str) {
    let words = [number, text.as_ptr() as usize, text.len()];
    for (word, value) in local().reason.iter().zip(words) {
        word.store(value, Relaxed);
    }
}

/// Takes the reason that [`leave_reason`] left; none if there is none.
pub fn take_reason() -> Option<(usize, &'static str)> {
    let [number, at, length] = [0, 1, 2].map(|place| local().reason[place].swap(0, Relaxed));
    // SAFETY: the parts of a static text, as `leave_reason` left them.
    let bytes = unsafe { std::slice::from_raw_parts((at as *const u8).as_ref()?, length) };
    Some((number, std::str::from_utf8(bytes).ok()?))
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
