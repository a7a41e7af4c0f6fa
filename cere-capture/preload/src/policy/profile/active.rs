//! The active regions of a thread, and what is booked when one is entered or left.

use super::room;
use super::tables::{Own, Tables};
use super::{kept, processor, tree};
use crate::policy::outermost::is_over;
use cere_format::abi::{EVENT_LEAVE, KIND_FUNCTION, RegionDescriptor};
use cere_format::profile_raw::*;
use std::sync::atomic::{AtomicU64, Ordering, Ordering::Relaxed, compiler_fence};

/// Cycles of a probe pair that count as the region's, and as its caller's.
static INSIDE: AtomicU64 = AtomicU64::new(0);
static OUTSIDE: AtomicU64 = AtomicU64::new(0);
/// Cycles of a pair of probes around a call of a function within another one, which is not booked.
static WITHIN: AtomicU64 = AtomicU64::new(0);

/// Sets the cost of a pair of probes: the cycles inside the measured time, and those outside; and of one around a call within
/// another one of its function.
pub fn set_cost(inside: u64, outside: u64, within: u64) {
    INSIDE.store(inside, Relaxed);
    OUTSIDE.store(outside, Relaxed);
    WITHIN.store(within, Relaxed);
}

/// Adds to a count that several threads have. Seldom.
#[cold]
pub unsafe fn count(word: *mut u64) {
    // SAFETY: a word of the caller's tables.
    unsafe { AtomicU64::from_ptr(word).fetch_add(1, Relaxed) };
}

/// Counts the active regions again: an event was left half booked.
#[cold]
pub unsafe fn recount_active<const FIRST: bool>(own: &Own<FIRST>) {
    // SAFETY: see `enter_region`.
    unsafe {
        let (header, state) = (own.tables.header(), own.state());
        count(&raw mut (*header).abandoned);
        for i in 0..((*header).regions).min((*state).times_room) as usize {
            (*own.times(i)).active = 0;
        }
        for i in 0..if FIRST { (*header).nodes } else { 0 } as usize {
            (*own.tables.node(i)).active = 0;
        }
        for i in 0..(*state).depth as usize {
            let entry = own.active(i);
            (*own.times((*entry).region as usize)).active += 1;
            if FIRST {
                (*own.tables.node((*entry).node as usize)).active += 1;
            }
        }
    }
}

/// The region's place in the table; `RAW_REGIONS` if there is no room for it. Two threads that meet a region of two images for
/// the first time at once may each give it a place: a reader adds both.
unsafe fn find_slot(tables: &Tables, region: *mut RegionDescriptor) -> usize {
    // SAFETY: descriptors and mapping are valid; words that other threads change are accessed as atomics.
    unsafe {
        let scratch = AtomicU64::from_ptr(&raw mut (*region).scratch);
        match scratch.load(Relaxed) as usize {
            0 => make_slot(tables, region, scratch),
            known => known - 1,
        }
    }
}

#[cold]
unsafe fn make_slot(tables: &Tables, region: *mut RegionDescriptor, scratch: &AtomicU64) -> usize {
    // SAFETY: see `find_slot`.
    unsafe {
        let id = (*(*region).unit).id;
        let regions = AtomicU64::from_ptr(&raw mut (*tables.header()).regions);
        let count = regions.load(Ordering::Acquire) as usize;
        // The same region in another image, or in an image that was loaded again.
        let found = (0..count.min(RAW_REGIONS)).find(|i| {
            let raw = tables.region(*i);
            (*raw).index == (*region).index && (*raw).unit == id
        });
        let slot = match found {
            Some(slot) => slot,
            None if !room::has_room(tables, room::REGIONS, count) => return RAW_REGIONS,
            None => {
                let slot = regions.fetch_add(1, Ordering::AcqRel) as usize;
                // Another thread may have taken the last place.
                if !room::has_room(tables, room::REGIONS, slot) {
                    regions.fetch_sub(1, Ordering::AcqRel);
                    return RAW_REGIONS;
                }
                let raw = tables.region(slot);
                (*raw).index = (*region).index;
                (*raw).kind = (*region).kind;
                (*raw).unit = id;
                slot
            }
        };
        match scratch.compare_exchange(0, slot as u64 + 1, Relaxed, Relaxed) {
            Ok(_) => slot,
            Err(known) => known as usize - 1,
        }
    }
}

/// The thread enters a region.
///
/// # Safety
/// The tables are the calling thread's, the descriptor is an armed region's, and no event of the thread is being booked.
pub unsafe fn enter_region<const FIRST: bool>(
    own: &Own<FIRST>,
    region: *mut RegionDescriptor,
    stack: u64,
) {
    // SAFETY: by the contract.
    unsafe {
        let (tables, state) = (&own.tables, own.state());
        let header = tables.header();
        let slot = find_slot(tables, region);
        while own.depth() > 0 {
            let top = own.active(own.depth() - 1);
            if is_over((*top).stack, stack) {
                count(&raw mut (*header).abandoned);
                pop_active(own, (*state).last_cycles, false);
            } else {
                break;
            }
        }
        if slot == RAW_REGIONS || !room::has_times(own, slot) {
            return count(&raw mut (*header).regions_lost);
        }
        let depth = (*state).depth as usize;
        if !room::has_active(own, depth) {
            return count(&raw mut (*header).depth_lost);
        }
        let times = own.times(slot);
        if (*region).kind == KIND_FUNCTION && (*times).active > 0 {
            // A call within another one is part of that, its probes are not.
            (*state).lost += WITHIN.load(Relaxed);
            return;
        }
        // A region that begins before the disk is full has a trace.
        if FIRST && (*times).invocations == 0 {
            room::holds_first(tables, slot, 0);
        }
        let node = match FIRST {
            true => tree::enter_node(own, slot as u32, (*times).active > 0),
            false => 0,
        };
        (*times).invocations += 1;
        (*times).active += 1;
        if !FIRST {
            note_caller(own, times, slot, depth);
            if (*times).user != (*state).users {
                (*times).user = (*state).users;
                (*times).users += 1;
            }
        }
        let entry = own.active(depth);
        *entry = RawActive {
            region: slot as u32,
            node,
            stack,
            start: 0,
            called: 0,
            pairs: 0,
            waited: 0,
            invocation: (*times).invocations,
        };
        compiler_fence(Ordering::SeqCst);
        (*state).depth += 1;
        (*state).pairs += 1;
        let mut now = cere_timing::clock::start();
        if now >= (*state).next_look {
            look(own, &*entry, now);
            now = cere_timing::clock::start();
        }
        (*state).last_cycles = now;
        (*entry).start = now - (*state).lost;
    }
}

/// The region at `slot` is entered at this depth, in a thread other than the first.
unsafe fn note_caller<const FIRST: bool>(
    own: &Own<FIRST>,
    times: *mut RawTimes,
    slot: usize,
    depth: usize,
) {
    // SAFETY: the caller's tables.
    unsafe {
        let caller = match depth.checked_sub(1) {
            None => CALLER_NONE,
            Some(above) => CALLER_FIRST + u64::from((*own.active(above)).region),
        };
        match (*times).caller {
            known if known == caller || caller == CALLER_FIRST + slot as u64 => {}
            0 => (*times).caller = caller,
            _ => (*times).caller = CALLER_SEVERAL,
        }
    }
}

/// What is not done at every entry: keeps a passage, reads the processor time.
#[cold]
unsafe fn look<const FIRST: bool>(own: &Own<FIRST>, entry: &RawActive, now: u64) {
    // SAFETY: the caller's tables.
    unsafe {
        let state = own.state();
        if now >= (*state).next_reading {
            let before = (*state).depth as usize - 1;
            processor::read(own, now, before, true);
        }
        let passage = match FIRST {
            true => {
                kept::passage(&own.tables, entry, now - (*state).lost).saturating_add((*state).lost)
            }
            false => u64::MAX,
        };
        (*state).next_look = passage.min((*state).next_reading);
    }
}

/// The thread leaves a region, which returned or was left by an exception, when the counter was `now`.
///
/// # Safety
/// As [`enter_region`].
pub unsafe fn leave_region<const FIRST: bool>(
    own: &Own<FIRST>,
    region: *mut RegionDescriptor,
    event: u32,
    stack: u64,
    now: u64,
) {
    // SAFETY: by the contract.
    unsafe {
        let state = own.state();
        let slot = (*region).scratch.wrapping_sub(1) as u32;
        let depth = (*state).depth as usize;
        let Some(found) = (0..depth).rev().find(|i| {
            let entry = own.active(*i);
            (*entry).region == slot && (*entry).stack == stack
        }) else {
            return;
        };
        let lost = (*state).lost;
        if now >= (*state).next_reading {
            processor::read(own, now, depth, true);
        }
        // What is lost since `now` is none of theirs.
        let later = (*state).lost - lost;
        while own.depth() > found + 1 {
            count(&raw mut (*own.tables.header()).abandoned);
            pop_active(own, (*state).last_cycles + later, false);
        }
        (*state).last_cycles = now + later;
        pop_active(own, now + later, event == EVENT_LEAVE);
    }
}

/// Closes the innermost active region, which has `finished` or was left in another way.
///
/// # Safety
/// As [`enter_region`]; one is active.
pub unsafe fn pop_active<const FIRST: bool>(own: &Own<FIRST>, now: u64, finished: bool) {
    // SAFETY: by the contract.
    unsafe {
        let state = own.state();
        (*state).depth -= 1;
        let depth = (*state).depth as usize;
        let entry = *own.active(depth);
        let inside = INSIDE.load(Relaxed);
        let pair = inside + OUTSIDE.load(Relaxed);
        let cycles = now
            .saturating_sub((*state).lost)
            .saturating_sub(entry.start)
            .saturating_sub(inside + entry.pairs * pair);
        let self_cycles = cycles.saturating_sub(entry.called);
        let times = own.times(entry.region as usize);
        (*times).active -= 1;
        (*times).own += self_cycles;
        if (*times).active == 0 {
            (*times).inclusive += cycles;
        }
        if depth > 0 {
            let caller = own.active(depth - 1);
            (*caller).called += cycles;
            (*caller).pairs += entry.pairs + 1;
            (*caller).waited += entry.waited;
        }
        // Of one that was not on a processor meanwhile the time is known to some thousand cycles: no less than the shortest.
        let least = match entry.waited {
            0 => 0,
            _ => (*times).min,
        };
        let work = cycles.saturating_sub(entry.waited).max(least);
        if finished {
            (*times).finished += 1;
            (*times).sum += work;
            (*times).max = (*times).max.max(work);
            if work > 0 && ((*times).min == 0 || work < (*times).min) {
                (*times).min = work;
            }
            if !FIRST && room::holds_sample(&own.tables, entry.region as usize, times) {
                kept::sample(&own.tables, entry.region as usize, work);
            }
        }
        if FIRST {
            let work = finished.then_some(work);
            pop_of_first(&own.tables, &entry, cycles, self_cycles, work);
        }
    }
}

/// What the first thread keeps beside the sums: nodes and traces. `work`: cycles of an invocation that ended.
#[inline(always)]
unsafe fn pop_of_first(
    tables: &Tables,
    entry: &RawActive,
    cycles: u64,
    self_cycles: u64,
    work: Option<u64>,
) {
    // SAFETY: see `pop_active`.
    unsafe {
        let node = tables.node(entry.node as usize);
        (*node).active = (*node).active.saturating_sub(1);
        (*node).own += self_cycles;
        if (*node).active == 0 {
            (*node).inclusive += cycles;
        }
        let slot = entry.region as usize;
        let trace = tables.trace(slot);
        let position = entry.invocation as usize - 1;
        let first = room::holds_first(tables, slot, position);
        if first {
            (*trace).first_starts[position] = entry.start;
        }
        let Some(work) = work else {
            return;
        };
        if first {
            (*trace).first[position] = work;
        } else if position < TRACE_FIRST {
            (*tables.header()).times_lost += 1;
        } else {
            kept::keep_time(tables, slot, entry.invocation, work, entry.start);
        }
    }
}
