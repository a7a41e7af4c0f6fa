//! Threads other than the first, those of OpenMP teams aside: each books in a block of the mapping that is its own. Any number of
//! them come and go, without a lock; blocks of threads that have ended are used again when no other is left.

use super::active::{count, pop_active};
use super::tables::{self, Own, Tables};
use super::{processor, room};
use crate::engine::parallel;
use crate::os::errno::keep_errno;
use crate::os::local::{self, local};
use crate::os::{ends, thread};
use crate::policy::openmp;
use cere_format::abi::EVENT_ENTER;
use cere_format::profile_raw::*;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*, compiler_fence};

/// Its destructor runs at the end of each thread that has a block.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
/// Threads that were started, those of teams aside.
static STARTED: AtomicUsize = AtomicUsize::new(0);
/// Place of the block that a thread has left last.
static LEFT: AtomicUsize = AtomicUsize::new(1);
/// A thread's block, where it has none: it is about to get one, there is none, or it ends.
const NO_BLOCK: usize = 1;

/// Takes the key whose destructor runs at the end of threads.
pub fn take_key() {
    KEY.get_or_init(|| ends::take_key(ends));
}

/// The number of a thread that is about to start.
pub fn next_number() -> usize {
    STARTED.fetch_add(1, Relaxed) + 1
}

/// What the calling thread books in. None for a thread of a team, which is part of the region that forked it, and where no block is
/// free: the event is counted then.
///
/// # Safety
/// The tables are there, and the calling thread is not the first.
#[inline(always)]
pub unsafe fn own(tables: &Tables, event: u32) -> Option<Own<false>> {
    if local::is_of_team() {
        return None;
    }
    let block = local().block.load(Relaxed);
    if block > NO_BLOCK {
        return Some(tables.other(block as *mut u8));
    }
    // SAFETY: by the contract.
    unsafe { own_new(tables, block, event) }
}

#[cold]
unsafe fn own_new(tables: &Tables, block: usize, event: u32) -> Option<Own<false>> {
    // Of a runtime that is part of the program nobody knows which threads are its own.
    if parallel::in_parallel() && openmp::runtime_range().1 == 0 {
        return None;
    }
    // SAFETY: by the contract.
    unsafe {
        // A handler that interrupts finds no block.
        local().block.store(NO_BLOCK, Relaxed);
        compiler_fence(SeqCst);
        let found = (block == 0).then(|| keep_errno(|| claim(tables))).flatten();
        let Some(own) = found else {
            if event == EVENT_ENTER {
                count(&raw mut (*tables.header()).threads_lost);
            }
            return None;
        };
        compiler_fence(SeqCst);
        local().block.store(own.block() as usize, Relaxed);
        Some(own)
    }
}

/// A block for the calling thread.
unsafe fn claim(tables: &Tables) -> Option<Own<false>> {
    // SAFETY: by the contract of `own`; who has claimed a block alone writes it.
    unsafe {
        let block = fresh_block(tables).or_else(|| ended_block(tables))?;
        let own = tables.other(block);
        let state = own.state();
        (*state).id = thread::id() as u32;
        (*state).number = match local().number.load(Relaxed) {
            0 => next_number(),
            number => number,
        } as u64;
        (*state).users += 1;
        (*state).depth = 0;
        (*state).busy = 0;
        (*state).parallel = 0;
        (*state).mpi_stack = 0;
        (*state).next_look = 0;
        (*state).processor_user = 0;
        processor::begin_thread(&own);
        let key = KEY.get().copied().unwrap_or(libc::pthread_key_t::MAX);
        libc::pthread_setspecific(key, block.cast::<c_void>());
        Some(own)
    }
}

/// A block that nobody has used.
unsafe fn fresh_block(tables: &Tables) -> Option<*mut u8> {
    // SAFETY: by the contract of `own`.
    unsafe {
        let threads = AtomicU64::from_ptr(&raw mut (*tables.header()).threads);
        loop {
            let place = threads.load(Relaxed);
            let block = tables.block(place as usize);
            if place as usize >= RAW_THREADS || !room::reserve_block(tables, block) {
                return None;
            }
            let more = threads.compare_exchange(place, place + 1, Relaxed, Relaxed);
            if more.is_ok() {
                state(block).store(THREAD_RUNS, Release);
                return Some(block);
            }
        }
    }
}

/// The block of a thread that has ended.
unsafe fn ended_block(tables: &Tables) -> Option<*mut u8> {
    // SAFETY: by the contract of `own`; these blocks are there.
    unsafe {
        let all = ((*tables.header()).threads as usize).min(RAW_THREADS);
        // The one that was left last, or the next one after it.
        let left = LEFT.load(Relaxed);
        let places = (left..all).chain(1..left.min(all));
        places.map(|place| tables.block(place)).find(|block| {
            let taken = state(*block).compare_exchange(THREAD_ENDED, THREAD_RUNS, AcqRel, Relaxed);
            taken.is_ok()
        })
    }
}

unsafe fn state(block: *mut u8) -> &'static AtomicU32 {
    // SAFETY: by the contract of `own`; the mapping stays.
    unsafe { AtomicU32::from_ptr(&raw mut (*block.cast::<RawThread>()).state) }
}

/// The calling thread ends: what is active in it was left. Destructors that run after this one get a block again.
unsafe extern "C" fn ends(block: *mut c_void) {
    let Some(tables) = tables::current() else {
        return;
    };
    local().block.store(NO_BLOCK, Relaxed);
    compiler_fence(SeqCst);
    let own = tables.other(block.cast());
    // SAFETY: the value of the key is the calling thread's block.
    unsafe {
        let now = cere_timing::clock::stop();
        let depth = (*own.state()).depth;
        processor::read(&own, now, depth as usize, false);
        for _ in 0..depth {
            pop_active(&own, now, false);
        }
        processor::end_thread(&own);
        state(own.block()).store(THREAD_ENDED, Release);
        LEFT.store(
            (own.block() as usize - tables.block(0) as usize) / THREAD_SIZE,
            Relaxed,
        );
    }
    compiler_fence(SeqCst);
    local().block.store(0, Relaxed);
}
