//! Whether the main thread runs a parallel region. Regions that it enters meanwhile are part of that one.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Stack pointer at the entry of the outermost running parallel region, or 0.
static PARALLEL: AtomicUsize = AtomicUsize::new(0);

/// Relation of a region to the running parallel region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// No parallel region runs, or this is it.
    Outside,
    /// It is part of that.
    Within,
}

/// The main thread enters a region, with this stack pointer.
#[inline]
pub fn enters(parallel: bool, stack: usize) -> Entry {
    let outer = PARALLEL.load(Ordering::Relaxed);
    if outer > stack {
        return Entry::Within;
    }
    // None runs, or it was left by longjmp.
    PARALLEL.store(if parallel { stack } else { 0 }, Ordering::Relaxed);
    Entry::Outside
}

/// The main thread leaves a region that was entered with this stack pointer.
#[inline]
pub fn leaves(stack: usize) -> Entry {
    let outer = PARALLEL.load(Ordering::Relaxed);
    if outer > stack {
        return Entry::Within;
    }
    if outer == stack {
        PARALLEL.store(0, Ordering::Relaxed);
    }
    Entry::Outside
}

/// Whether a parallel region runs.
pub fn in_parallel() -> bool {
    PARALLEL.load(Ordering::Relaxed) != 0
}
