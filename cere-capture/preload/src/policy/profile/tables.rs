//! The tables of a profile in their file mapping.

use crate::os::{process, thread};
use cere_format::profile_raw::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Start of the mapping; null where nothing is profiled.
static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Control block of the first thread.
static FIRST: AtomicUsize = AtomicUsize::new(0);

/// The tables of the process; none if it is not profiled.
#[inline(always)]
pub fn current() -> Option<Tables> {
    let base = BASE.load(Ordering::Relaxed);
    (!base.is_null() && !process::is_copy()).then_some(Tables { base })
}

/// Whether the calling thread is the first.
#[inline(always)]
pub fn is_first() -> bool {
    thread::pointer() == FIRST.load(Ordering::Relaxed)
}

/// Nothing is profiled any more; what the tables were.
pub fn take() -> Option<Tables> {
    let base = BASE.swap(null_mut(), Ordering::AcqRel);
    (!base.is_null()).then_some(Tables { base })
}

/// The tables of a profile.
#[derive(Clone, Copy)]
pub struct Tables {
    /// Start of the mapping.
    pub base: *mut u8,
}

impl Tables {
    /// These are the tables of the process from now on, and the calling thread is the first.
    ///
    /// # Safety
    /// They are there as long as the process, and no others are in use.
    pub unsafe fn use_from_now(&self) {
        FIRST.store(thread::pointer(), Ordering::Relaxed);
        BASE.store(self.base, Ordering::Release);
    }
    /// Its header.
    pub fn header(&self) -> *mut RawHeader {
        self.base.cast()
    }
    /// A region, by its place.
    pub fn region(&self, index: usize) -> *mut RawRegion {
        entry(self.base, REGIONS_OFFSET, index)
    }
    /// A node of the tree, by its place.
    pub fn node(&self, index: usize) -> *mut RawNode {
        entry(self.base, NODES_OFFSET, index)
    }
    /// A passage from region to region.
    pub fn passage(&self, index: usize) -> *mut RawPassage {
        entry(self.base, PASSAGES_OFFSET, index)
    }
    /// The trace of a region, by the place of that.
    pub fn trace(&self, index: usize) -> *mut RawTrace {
        entry(self.base, TRACES_OFFSET, index)
    }
    /// The sample of a region, by the place of that.
    pub fn sample(&self, index: usize) -> *mut RawSample {
        entry(self.base, SAMPLES_OFFSET, index)
    }
    /// The block of a thread, by its place.
    pub fn block(&self, index: usize) -> *mut u8 {
        entry(self.base, THREADS_OFFSET, index * THREAD_SIZE)
    }
    /// What the first thread has.
    pub fn first(&self) -> Own<true> {
        Own {
            tables: *self,
            block: self.block(0),
        }
    }
    /// What another thread has, whose block this is.
    pub fn other(&self, block: *mut u8) -> Own<false> {
        Own {
            tables: *self,
            block,
        }
    }
}

/// What one thread books in: the `FIRST`, or another.
#[derive(Clone, Copy)]
pub struct Own<const FIRST: bool> {
    /// The tables of all.
    pub tables: Tables,
    block: *mut u8,
}

impl<const FIRST: bool> Own<FIRST> {
    /// Its block. The first thread's lies at a fixed distance.
    #[inline(always)]
    pub fn block(&self) -> *mut u8 {
        match FIRST {
            true => self.tables.block(0),
            false => self.block,
        }
    }
    /// Its state.
    #[inline(always)]
    pub fn state(&self) -> *mut RawThread {
        self.block().cast()
    }
    /// Number of its active regions.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        // SAFETY: its block is there.
        unsafe { (*self.state()).depth as usize }
    }
    /// Its times of a region, by the place of that.
    #[inline(always)]
    pub fn times(&self, index: usize) -> *mut RawTimes {
        entry(self.block(), TIMES_OFFSET, index)
    }
    /// An active region, the outermost first.
    #[inline(always)]
    pub fn active(&self, index: usize) -> *mut RawActive {
        match FIRST {
            true => entry(self.tables.base, ACTIVE_OFFSET, index),
            false => entry(self.block(), THREAD_ACTIVE_OFFSET, index),
        }
    }
}

#[inline(always)]
fn entry<T>(base: *mut u8, offset: usize, index: usize) -> *mut T {
    // SAFETY: all offsets stay within the mapping of RAW_SIZE bytes.
    unsafe { base.add(offset).cast::<T>().add(index) }
}
