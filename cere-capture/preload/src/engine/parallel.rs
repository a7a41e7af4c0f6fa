//! Whether a thread runs a parallel region. Regions that it enters meanwhile are part of that one.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Stack pointer at the entry of a thread's outermost running parallel region, or 0.
#[repr(transparent)]
pub struct Running(AtomicUsize);

static FIRST: Running = Running(AtomicUsize::new(0));

/// Relation of a region to the running parallel region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// No parallel region runs, or this is it.
    Outside,
    /// It is part of that.
    Within,
}

impl Running {
    /// The one at `word`.
    ///
    /// # Safety
    /// The word is there for `'a`, and the calling thread's alone.
    pub unsafe fn at<'a>(word: *mut u64) -> &'a Running {
        // SAFETY: by the contract; the same layout.
        unsafe { &*word.cast::<Running>() }
    }

    /// The thread enters a region, with this stack pointer.
    #[inline]
    pub fn enters(&self, parallel: bool, stack: usize) -> Entry {
        if self.0.load(Ordering::Relaxed) > stack {
            return Entry::Within;
        }
        // None runs, or it was left by longjmp.
        self.0
            .store(if parallel { stack } else { 0 }, Ordering::Relaxed);
        Entry::Outside
    }

    /// The thread leaves a region that was entered with this stack pointer.
    #[inline]
    pub fn leaves(&self, stack: usize) -> Entry {
        let outer = self.0.load(Ordering::Relaxed);
        if outer > stack {
            return Entry::Within;
        }
        if outer == stack {
            self.0.store(0, Ordering::Relaxed);
        }
        Entry::Outside
    }
}

/// That of the first thread.
pub fn of_first() -> &'static Running {
    &FIRST
}

/// The first thread enters a region, with this stack pointer.
#[inline]
pub fn enters(parallel: bool, stack: usize) -> Entry {
    FIRST.enters(parallel, stack)
}

/// The first thread leaves a region that was entered with this stack pointer.
#[inline]
pub fn leaves(stack: usize) -> Entry {
    FIRST.leaves(stack)
}

/// Whether the first thread runs a parallel region.
pub fn in_parallel() -> bool {
    FIRST.0.load(Ordering::Relaxed) != 0
}
