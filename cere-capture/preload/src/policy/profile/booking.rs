//! Books what the probes report.
//!
//! The hook runs on the program's stack in the program's thread: no allocation, no libc, no errno. The exception is the start
//! of the OpenMP runtime's threads before the first parallel region. A signal may interrupt the hook, and its handler may run
//! regions: they are counted, not booked. It may even leave the hook by longjmp: so an entry is complete before the tables
//! refer to it.

use super::tables::Tables;
use super::{kept, processor, room};
use crate::engine::parallel::{self, Entry};
use crate::os::errno::keep_errno;
use crate::os::{process, sys, thread};
use crate::policy::{elsewhere, openmp, stub};
use cere_format::abi::{EVENT_ENTER, EVENT_LEAVE, KIND_PARALLEL, RegionDescriptor};
use cere_format::profile_raw::*;
use std::ptr::{addr_of_mut, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, compiler_fence};

/// Start of the mapping; null where nothing is profiled.
static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Control block of the thread that is profiled.
static MAIN: AtomicUsize = AtomicUsize::new(0);
/// Cycles of a probe pair that count as the region's, and as its caller's.
static INSIDE: AtomicU64 = AtomicU64::new(0);
static OUTSIDE: AtomicU64 = AtomicU64::new(0);
/// Stack pointer at the probe whose event is being booked, or 0.
static BUSY: AtomicUsize = AtomicUsize::new(0);

stub::hook!(cere_profile_stub, on_event);

unsafe extern "C" fn on_event(region: *mut RegionDescriptor, event: u32, _: *mut u8, stack: u64) {
    let base = BASE.load(Ordering::Relaxed);
    if base.is_null() || process::is_copy() {
        return;
    }
    let tables = Tables { base };
    // SAFETY: the mapping is there while BASE is set; only the main thread goes past the check.
    unsafe {
        if thread::pointer() != MAIN.load(Ordering::Relaxed) {
            // A team's threads are part of the region that forked it.
            if !parallel::in_parallel() {
                AtomicU64::from_ptr(addr_of_mut!((*tables.header()).other_threads))
                    .fetch_add(1, Ordering::Relaxed);
                if event == EVENT_ENTER {
                    elsewhere::count_entry(tables.elsewhere(), region);
                }
            }
            return;
        }
        let (now, place) = match event {
            EVENT_ENTER => {
                let parallel = (*region).kind == KIND_PARALLEL;
                (0, parallel::enters(parallel, stack as usize))
            }
            _ => (cere_timing::clock::stop(), parallel::leaves(stack as usize)),
        };
        if place == Entry::Within {
            return;
        }
        let busy = BUSY.load(Ordering::Relaxed);
        if busy != 0 {
            if !was_left(busy as u64, stack) {
                (*tables.header()).interrupted += u64::from(event == EVENT_ENTER);
                return;
            }
            recount_active(&tables);
        }
        BUSY.store(stack as usize, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if event == EVENT_ENTER {
            if (*region).kind == KIND_PARALLEL && !openmp::has_started_team() {
                keep_errno(|| openmp::start_team(0));
            }
            enter_region(&tables, region, stack);
        } else {
            leave_region(&tables, region, event, stack, now);
        }
        compiler_fence(Ordering::SeqCst);
        BUSY.store(0, Ordering::Relaxed);
    }
}

/// Whether code that had stack pointer `before` was left by longjmp, now that code with `now` runs.
#[cold]
fn was_left(before: u64, now: u64) -> bool {
    let mut alternate = [0u64; 3];
    // SAFETY: the kernel's stack_t is three words: start, flags, size.
    unsafe {
        let at = alternate.as_mut_ptr() as usize;
        sys::call(libc::SYS_sigaltstack, [0, at, 0, 0, 0, 0]);
    }
    let [start, _, size] = alternate;
    let on = |stack: u64| stack > start && stack - start <= size;
    match (on(before), on(now)) {
        (false, true) => false,
        (true, false) => true,
        _ => before <= now,
    }
}

/// Counts the active regions again: an event was left half booked.
#[cold]
unsafe fn recount_active(tables: &Tables) {
    // SAFETY: see `on_event`.
    unsafe {
        let header = tables.header();
        (*header).abandoned += 1;
        for i in 0..(*header).regions as usize {
            (*tables.region(i)).active = 0;
        }
        for i in 0..(*header).nodes as usize {
            (*tables.node(i)).active = 0;
        }
        for i in 0..(*header).depth as usize {
            let entry = tables.active(i);
            (*tables.region((*entry).region as usize)).active += 1;
            (*tables.node((*entry).node as usize)).active += 1;
        }
    }
}

/// The region's place in the table; `RAW_REGIONS` if there is no room for it.
unsafe fn find_slot(tables: &Tables, region: *mut RegionDescriptor) -> usize {
    // SAFETY: descriptors and mapping are valid.
    unsafe {
        let known = (*region).scratch as usize;
        if known != 0 {
            return known - 1;
        }
        let id = (*(*region).unit).id;
        let header = tables.header();
        let count = (*header).regions as usize;
        // The same region in another image, or in an image that was loaded again.
        let found = (0..count).find(|i| {
            let raw = tables.region(*i);
            (*raw).index == (*region).index && (*raw).unit == id
        });
        let slot = match found {
            Some(slot) => slot,
            None if !room::has_room(tables, room::REGIONS, count) => return RAW_REGIONS,
            None => {
                let raw = tables.region(count);
                (*raw).unit = id;
                (*raw).index = (*region).index;
                (*raw).min = u64::MAX;
                if room::holds_first(tables, count, 0) {
                    (*tables.trace(count)).stride = 1;
                }
                compiler_fence(Ordering::SeqCst);
                (*header).regions += 1;
                count
            }
        };
        (*region).scratch = slot as u64 + 1;
        slot
    }
}

unsafe fn enter_region(tables: &Tables, region: *mut RegionDescriptor, stack: u64) {
    // SAFETY: see `on_event`.
    unsafe {
        let header = tables.header();
        let slot = find_slot(tables, region);
        // A nested probe lies strictly deeper: an entry at this depth or deeper was left by longjmp.
        while (*header).depth > 0 {
            let top = tables.active((*header).depth as usize - 1);
            let apart = (*top).stack.abs_diff(stack);
            if (*top).stack <= stack && apart < 1 << 30 && was_left((*top).stack, stack) {
                let last = (*header).last_cycles;
                (*header).abandoned += 1;
                pop_active(tables, last, false);
            } else {
                break;
            }
        }
        if slot == RAW_REGIONS {
            (*header).regions_lost += 1;
            return;
        }
        if !room::has_room(tables, room::ACTIVE, (*header).depth as usize) {
            (*header).depth_lost += 1;
            return;
        }
        let raw = tables.region(slot);
        let caller = match (*header).depth {
            0 => 0,
            depth => (*tables.active(depth as usize - 1)).node,
        };
        let node = find_node(tables, caller, slot as u32, (*raw).active > 0);
        (*raw).invocations += 1;
        (*raw).active += 1;
        let place = tables.node(node as usize);
        (*place).invocations += 1;
        (*place).active += 1;
        let entry = tables.active((*header).depth as usize);
        *entry = RawActive {
            region: slot as u32,
            node,
            stack,
            start: 0,
            called: 0,
            pairs: 0,
            invocation: (*raw).invocations,
        };
        compiler_fence(Ordering::SeqCst);
        (*header).depth += 1;
        (*header).pairs += 1;
        let mut now = cere_timing::clock::start();
        if now >= (*header).next_passage {
            kept::keep_passage(tables, &*entry, now);
            now = cere_timing::clock::start();
        }
        (*header).last_cycles = now;
        (*entry).start = now;
    }
}

/// The node of `region` called from `caller`; a recursive region keeps the node it has in the chain.
unsafe fn find_node(tables: &Tables, caller: u32, region: u32, recursive: bool) -> u32 {
    // SAFETY: see `on_event`.
    unsafe {
        if recursive {
            let mut up = caller;
            while up != 0 {
                if (*tables.node(up as usize)).region == region {
                    return up;
                }
                up = (*tables.node(up as usize)).parent;
            }
        }
        let first = (*tables.node(caller as usize)).child;
        let (mut before, mut at) = (0, first);
        while at != 0 {
            let found = tables.node(at as usize);
            if (*found).region == region {
                // To the front: a caller with a hundred callees enters few of them often.
                if before != 0 {
                    (*tables.node(before as usize)).sibling = (*found).sibling;
                    (*found).sibling = first;
                    (*tables.node(caller as usize)).child = at;
                }
                return at;
            }
            (before, at) = (at, (*found).sibling);
        }
        let header = tables.header();
        let fresh = (*header).nodes as usize;
        if !room::has_room(tables, room::NODES, fresh) {
            return caller;
        }
        let parent = tables.node(caller as usize);
        *tables.node(fresh) = RawNode {
            region,
            parent: caller,
            child: 0,
            sibling: (*parent).child,
            active: 0,
            reserved: 0,
            invocations: 0,
            inclusive: 0,
            own: 0,
        };
        (*header).nodes += 1;
        compiler_fence(Ordering::SeqCst);
        (*parent).child = fresh as u32;
        fresh as u32
    }
}

unsafe fn leave_region(
    tables: &Tables,
    region: *mut RegionDescriptor,
    event: u32,
    stack: u64,
    now: u64,
) {
    // SAFETY: see `on_event`.
    unsafe {
        let header = tables.header();
        let slot = (*region).scratch.wrapping_sub(1) as u32;
        let depth = (*header).depth as usize;
        let Some(found) = (0..depth).rev().find(|i| {
            let entry = tables.active(*i);
            (*entry).region == slot && (*entry).stack == stack
        }) else {
            return;
        };
        while (*header).depth as usize > found + 1 {
            (*header).abandoned += 1;
            let last = (*header).last_cycles;
            pop_active(tables, last, false);
        }
        (*header).last_cycles = now;
        pop_active(tables, now, event == EVENT_LEAVE);
    }
}

unsafe fn pop_active(tables: &Tables, now: u64, finished: bool) {
    // SAFETY: see `on_event`; the depth is at least 1.
    unsafe {
        let header = tables.header();
        (*header).depth -= 1;
        let depth = (*header).depth as usize;
        let entry = *tables.active(depth);
        let inside = INSIDE.load(Ordering::Relaxed);
        let pair = inside + OUTSIDE.load(Ordering::Relaxed);
        let cycles = now
            .saturating_sub(entry.start)
            .saturating_sub(inside + entry.pairs * pair);
        let own = cycles.saturating_sub(entry.called);
        let raw = tables.region(entry.region as usize);
        (*raw).active -= 1;
        (*raw).own += own;
        if (*raw).active == 0 {
            (*raw).inclusive += cycles;
        }
        let node = tables.node(entry.node as usize);
        (*node).active = (*node).active.saturating_sub(1);
        (*node).own += own;
        if (*node).active == 0 {
            (*node).inclusive += cycles;
        }
        if depth > 0 {
            let caller = tables.active(depth - 1);
            (*caller).called += cycles;
            (*caller).pairs += entry.pairs + 1;
        }
        let slot = entry.region as usize;
        let trace = tables.trace(slot);
        let position = entry.invocation as usize - 1;
        let first = room::holds_first(tables, slot, position);
        if first {
            (*trace).first_starts[position] = entry.start;
        }
        if !finished {
            return;
        }
        (*raw).finished += 1;
        (*raw).sum += cycles;
        (*raw).min = (*raw).min.min(cycles);
        (*raw).max = (*raw).max.max(cycles);
        if first {
            (*trace).first[position] = cycles;
        } else if position < TRACE_FIRST {
            (*header).times_lost += 1;
        } else {
            kept::keep_time(tables, slot, entry.invocation, cycles, entry.start);
        }
    }
}

/// The program ends in an orderly way: closes what is active and notes the time.
pub fn finish_profile() {
    let base = BASE.swap(null_mut(), Ordering::AcqRel);
    if base.is_null() {
        return;
    }
    let tables = Tables { base };
    let now = cere_timing::clock::moment();
    // SAFETY: nobody else uses the tables after the swap, but for a probe in flight in another thread.
    unsafe {
        let header = tables.header();
        (*header).end_cycles = now.cycles;
        (*header).end_nanoseconds = now.nanoseconds;
        processor::finish(header);
        for _ in 0..(*header).depth {
            pop_active(&tables, now.cycles, false);
        }
    }
}

/// A forked child leaves its parent's profile alone.
pub fn abandon_profile() {
    BASE.store(null_mut(), Ordering::Release);
}

/// The calling thread is profiled from now on.
///
/// # Safety
/// The tables are there as long as the process, and no others are in use.
pub unsafe fn use_tables(tables: &Tables) {
    MAIN.store(thread::pointer(), Ordering::Relaxed);
    BASE.store(tables.base, Ordering::Release);
}

/// Whether the process is profiled.
pub fn is_profiled() -> bool {
    !BASE.load(Ordering::Relaxed).is_null()
}

/// Sets the cost of a pair of probes: the cycles inside the measured time, and those outside.
pub fn set_cost(inside: u64, outside: u64) {
    INSIDE.store(inside, Ordering::Relaxed);
    OUTSIDE.store(outside, Ordering::Relaxed);
}
