//! The region heap: where `malloc` takes its blocks from inside captured invocations. A replay that makes the same calls gets
//! the same addresses.

use crate::os::section::Lock;
use crate::os::spare::{self, Memory};
use crate::os::{arena, local, sys, thread};
use cere_inside::heap::{BASE, Heap, SIZE};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A block of memory, as C passes it.
pub type Block = *mut c_void;

/// The thread that runs inside a captured invocation.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// Size of the region heap's range; 0 if there is none.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
static LOCK: Lock = Lock::new();

/// Reserves the region heap. False if the system refuses.
pub fn reserve_heap() -> bool {
    for size in [SIZE, 8 << 30, 1 << 30] {
        if arena::reserve_at(BASE, size) {
            RESERVED.store(size, Ordering::Release);
            return true;
        }
    }
    false
}

/// [start, end) of the region heap.
pub fn heap_range() -> (u64, u64) {
    match RESERVED.load(Ordering::Relaxed) {
        0 => (0, 0),
        size => (BASE as u64, (BASE + size) as u64),
    }
}

/// State of the allocators when a captured invocation begins.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// End of the used part of the region heap.
    pub used: usize,
    /// Bytes in allocated blocks of the region heap.
    pub live: usize,
    /// Bytes in freed blocks of the region heap.
    pub freed: usize,
    /// Memory of the C library's allocator; none if unknown.
    pub memory: Option<Memory>,
}

/// Bytes in allocated blocks of the region heap.
pub fn live_bytes() -> usize {
    with_heap(|heap| heap.live())
}

/// Present state of the allocators. Other threads may free blocks of the region heap meanwhile.
pub fn read_usage() -> Usage {
    let memory = spare::read_memory();
    with_heap(|heap| {
        let mut freed = 0;
        heap.each_free(|start, end| freed += end - start);
        Usage {
            used: heap.used(),
            live: heap.live(),
            freed,
            memory,
        }
    })
}

/// Resets the region heap to its unused state, if none of its blocks is allocated.
pub fn renew_if_empty() {
    with_heap(|heap| {
        let used = heap.used() - BASE;
        if heap.live() == 0 && used > 0 {
            // SAFETY: our own range, of which nobody uses a block; it holds zeros afterwards.
            unsafe {
                let dropped = libc::MADV_DONTNEED as usize;
                sys::call(libc::SYS_madvise, [BASE, used, dropped, 0, 0, 0]);
            }
        }
    });
}

/// Switches the program's thread to the region heap or back.
pub fn set_inside(yes: bool) {
    let thread = if yes { thread::pointer() } else { 0 };
    INSIDE.store(thread, Ordering::Relaxed);
}

/// Whether the calling thread runs inside a captured invocation: the one that entered it, or one of its team.
#[inline]
pub fn is_inside() -> bool {
    let thread = INSIDE.load(Ordering::Relaxed);
    thread != 0 && (thread == thread::pointer() || local::is_of_team()) && !local::in_library()
}

/// Runs `work` on the region heap under its lock.
pub fn with_heap<T>(work: impl FnOnce(&mut Heap) -> T) -> T {
    if is_inside_elsewhere() {
        // Another thread waits here for open memory, not with the lock held.
        // SAFETY: the heap is reserved, and not used before.
        unsafe { (BASE as *const u8).read_volatile() };
    }
    LOCK.with(|| {
        // SAFETY: the reserved range, if there is one; an unused heap holds zeros. Alone by the lock.
        let mut heap = unsafe { Heap::new(BASE, BASE + RESERVED.load(Ordering::Relaxed)) };
        work(&mut heap)
    })
}

/// Whether a block belongs to the region heap.
pub fn in_heap(block: Block) -> bool {
    (BASE..BASE + RESERVED.load(Ordering::Relaxed)).contains(&(block as usize))
}

/// Whether another thread than the calling one runs inside a captured invocation.
#[inline]
pub fn is_inside_elsewhere() -> bool {
    INSIDE.load(Ordering::Relaxed) != 0 && !is_inside()
}

/// In a forked child: its one thread holds neither of the locks.
pub fn reset_in_child() {
    arena::reset_in_child();
    LOCK.forked();
    INSIDE.store(0, Ordering::Relaxed);
}
