//! Books what the probes report.
//!
//! The hook runs on the program's stack in the program's thread: no allocation, no libc, no errno. The exception is the start
//! of the OpenMP runtime's threads before the first parallel region. A signal may interrupt the hook, and its handler may run
//! regions: they are counted, not booked. It may even leave the hook by longjmp: so an entry is complete before the tables
//! refer to it.

use super::active::{count, enter_region, leave_region, pop_active, recount_active};
use super::tables::{self, Own};
use super::{others, processor};
use crate::engine::parallel::{self, Entry, Running};
use crate::os::errno::keep_errno;
use crate::policy::outermost::was_left;
use crate::policy::{openmp, stub};
use cere_format::abi::{EVENT_ENTER, KIND_PARALLEL, RegionDescriptor};
use std::sync::atomic::{Ordering, compiler_fence};

stub::hook!(cere_profile_stub, on_event);

unsafe extern "C" fn on_event(region: *mut RegionDescriptor, event: u32, _: *mut u8, stack: u64) {
    let Some(tables) = tables::current() else {
        return;
    };
    // SAFETY: the mapping is there while there are tables; each thread books in what is its own.
    unsafe {
        if tables::is_first() {
            book(&tables.first(), parallel::of_first(), region, event, stack);
        } else if let Some(own) = others::own(&tables, event) {
            let running = Running::at(&raw mut (*own.state()).parallel);
            book(&own, running, region, event, stack);
        }
    }
}

/// Books an event of the calling thread.
#[inline(always)]
unsafe fn book<const FIRST: bool>(
    own: &Own<FIRST>,
    running: &Running,
    region: *mut RegionDescriptor,
    event: u32,
    stack: u64,
) {
    // SAFETY: the tables are the calling thread's, and the descriptor is an armed region's.
    unsafe {
        let parallel = (*region).kind == KIND_PARALLEL;
        let (now, place) = match event {
            EVENT_ENTER => (0, running.enters(parallel, stack as usize)),
            _ => (cere_timing::clock::stop(), running.leaves(stack as usize)),
        };
        if place == Entry::Within {
            return;
        }
        let state = own.state();
        let busy = (*state).busy;
        if busy != 0 {
            if !was_left(busy, stack) {
                if event == EVENT_ENTER {
                    count(&raw mut (*own.tables.header()).interrupted);
                }
                return;
            }
            recount_active(own);
        }
        (&raw mut (*state).busy).write_volatile(stack);
        compiler_fence(Ordering::SeqCst);
        if event == EVENT_ENTER {
            if FIRST && parallel && !openmp::has_started_team() {
                keep_errno(|| openmp::start_team(0));
            }
            enter_region(own, region, stack);
        } else {
            leave_region(own, region, event, stack, now);
        }
        compiler_fence(Ordering::SeqCst);
        (&raw mut (*state).busy).write_volatile(0);
    }
}

/// The program ends in an orderly way: closes what is active and notes the time.
pub fn finish_profile() {
    let Some(tables) = tables::take() else {
        return;
    };
    let now = cere_timing::clock::moment();
    let first = tables.first();
    // SAFETY: nobody else uses the first thread's tables any more. Of the others' the reader closes what is active: a probe of
    // theirs may be in flight.
    unsafe {
        let header = tables.header();
        (*header).end_cycles = now.cycles;
        (*header).end_nanoseconds = now.nanoseconds;
        let depth = (*first.state()).depth;
        if tables::is_first() {
            processor::read(&first, now.cycles, depth as usize, false);
        }
        processor::finish(&tables);
        for _ in 0..depth {
            pop_active(&first, now.cycles, false);
        }
    }
}

/// A forked child leaves its parent's profile alone.
pub fn abandon_profile() {
    let _ = tables::take();
}
