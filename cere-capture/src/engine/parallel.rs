//! Whether the main thread runs a parallel region: what it enters meanwhile is part of that.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Stack pointer where the outermost parallel region that runs was entered, or 0.
static PARALLEL: AtomicUsize = AtomicUsize::new(0);

/// What an entry into a region is to the parallel region that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// None runs, or this is it.
    Outside,
    /// Part of it.
    Within,
}

/// The main thread enters a region, with this stack pointer.
#[inline]
pub fn enters(parallel: bool, stack: usize) -> Entry {
    let outer = PARALLEL.load(Ordering::Relaxed);
    if outer > stack {
        return Entry::Within;
    }
    // None, or it was left by longjmp.
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
