//! Room on the disk for the profile. Without room on the disk, a write to a page of a file mapping raises SIGBUS, here in the
//! program. So the kernel is asked for each page first.

use super::tables::{Own, Tables};
use crate::os::sys;
use cere_format::profile_raw::*;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that a table grows by; one of a thread.
const STEP: usize = 64 << 10;
const STEP_OF_THREAD: usize = 4 << 10;
/// Invocations that a trace grows by.
const TRACE_STEP: usize = 512;

/// A table from some origin on, and where the number of entries that it has room for lies.
#[derive(Clone, Copy)]
pub struct Table {
    offset: usize,
    entry: usize,
    most: usize,
    room: usize,
    step: usize,
}

impl Table {
    const fn of<T>(offset: usize, most: usize, room: usize, step: usize) -> Table {
        Table {
            offset,
            entry: size_of::<T>(),
            most,
            room,
            step,
        }
    }
}

// From the mapping's start on.
pub const REGIONS: Table = Table::of::<RawRegion>(
    REGIONS_OFFSET,
    RAW_REGIONS,
    offset_of!(RawHeader, regions_room),
    STEP,
);
pub const NODES: Table = Table::of::<RawNode>(
    NODES_OFFSET,
    RAW_NODES,
    offset_of!(RawHeader, nodes_room),
    STEP,
);
pub const PASSAGES: Table = Table::of::<RawPassage>(
    PASSAGES_OFFSET,
    RAW_PASSAGES,
    offset_of!(RawHeader, passages_room),
    STEP,
);
const ACTIVE: Table = Table::of::<RawActive>(
    ACTIVE_OFFSET,
    RAW_DEPTH,
    THREADS_OFFSET + offset_of!(RawThread, active_room),
    STEP,
);
// From a thread's block on.
const ACTIVE_OF_THREAD: Table = Table::of::<RawActive>(
    THREAD_ACTIVE_OFFSET,
    THREAD_DEPTH,
    offset_of!(RawThread, active_room),
    STEP_OF_THREAD,
);
const TIMES: Table = Table::of::<RawTimes>(
    TIMES_OFFSET,
    RAW_REGIONS,
    offset_of!(RawThread, times_room),
    STEP_OF_THREAD,
);

/// Whether a table of all threads has room for its entry `index`, which is made where there is none.
#[inline(always)]
pub unsafe fn has_room(tables: &Tables, table: Table, index: usize) -> bool {
    // SAFETY: the caller's tables, where the table begins.
    unsafe { has_room_from(tables, tables.base, table, index) }
}

/// The same for the active regions of a thread.
#[inline(always)]
pub unsafe fn has_active<const FIRST: bool>(own: &Own<FIRST>, index: usize) -> bool {
    // SAFETY: the caller's tables, where the table begins, or in the block.
    unsafe {
        match FIRST {
            true => has_room(&own.tables, ACTIVE, index),
            false => has_room_from(&own.tables, own.block(), ACTIVE_OF_THREAD, index),
        }
    }
}

/// The same for the times of regions in a thread.
#[inline(always)]
pub unsafe fn has_times<const FIRST: bool>(own: &Own<FIRST>, slot: usize) -> bool {
    // SAFETY: the caller's tables, whose block begins there.
    unsafe { has_room_from(&own.tables, own.block(), TIMES, slot) }
}

#[inline(always)]
unsafe fn has_room_from(tables: &Tables, origin: *mut u8, table: Table, index: usize) -> bool {
    // SAFETY: the caller's tables; a word lies at `table.room` from the origin on.
    unsafe {
        let room = origin.add(table.room).cast::<u64>();
        index < *room as usize || grow_table(tables, origin, table, index)
    }
}

#[cold]
unsafe fn grow_table(tables: &Tables, origin: *mut u8, table: Table, index: usize) -> bool {
    let most = (index + 1 + table.step / table.entry).min(table.most);
    // SAFETY: the caller's tables; the range lies in the table. Threads that make room at the same time make the same.
    unsafe {
        let room = AtomicU64::from_ptr(origin.add(table.room).cast());
        let from = (room.load(Relaxed) as usize).min(index) * table.entry;
        let at = origin.add(table.offset + from);
        if index >= table.most || !reserve_disk(tables, at, most * table.entry - from) {
            return false;
        }
        room.fetch_max(most as u64, Relaxed);
    }
    true
}

/// Makes the room that a thread's block begins with; says whether there is any.
pub unsafe fn reserve_block(tables: &Tables, block: *mut u8) -> bool {
    // SAFETY: the caller's tables, whose block this is.
    unsafe { reserve_disk(tables, block, TIMES_OFFSET) }
}

/// Whether the sample of the region at `slot` has room; `times` are the thread's, which is not the first.
#[inline(always)]
pub unsafe fn holds_sample(tables: &Tables, slot: usize, times: *mut RawTimes) -> bool {
    // SAFETY: the caller's tables, whose region `slot` is in use.
    unsafe {
        if (*times).later_room == 0 {
            let at = tables.sample(slot).cast();
            let held = reserve_disk(tables, at, size_of::<RawSample>());
            (*times).later_room = if held { 1 } else { 2 };
        }
        (*times).later_room == 1
    }
}

/// Whether the trace of the region at `slot` has room for the time of invocation `position` + 1.
#[inline(always)]
pub unsafe fn holds_first(tables: &Tables, slot: usize, position: usize) -> bool {
    // SAFETY: the caller's tables, whose region `slot` is in use.
    unsafe {
        let room = &raw mut (*tables.first().times(slot)).first_room;
        position < *room as usize
            || position < TRACE_FIRST && grow_first(tables, slot, room, position)
    }
}

#[cold]
unsafe fn grow_first(tables: &Tables, slot: usize, room: *mut u32, position: usize) -> bool {
    let most = (position + 1).next_multiple_of(TRACE_STEP).min(TRACE_FIRST);
    // SAFETY: the caller's tables; the ranges lie in the region's trace.
    unsafe {
        let from = *room as usize;
        let starts = offset_of!(RawTrace, first_starts);
        // The first part takes the words along that the trace begins with.
        let first = match from {
            0 => 0,
            _ => offset_of!(RawTrace, first) + from * 8,
        };
        let until = offset_of!(RawTrace, first) + most * 8;
        let at = tables.trace(slot).cast::<u8>();
        if !reserve_disk(tables, at.add(first), until - first)
            || !reserve_disk(tables, at.add(starts + from * 8), (most - from) * 8)
        {
            return false;
        }
        if from == 0 {
            (*tables.trace(slot)).stride = 1;
        }
        *room = most as u32;
    }
    true
}

/// Later invocations that the trace of the region at `slot` has room for, more than `kept` if more can be had.
pub unsafe fn later(tables: &Tables, slot: usize, kept: usize) -> usize {
    // SAFETY: the caller's tables, whose region `slot` is in use; the range lies in its trace.
    unsafe {
        let room = &raw mut (*tables.first().times(slot)).later_room;
        let have = *room as usize;
        if kept < have || have == TRACE_SAMPLED {
            return have;
        }
        let entry = size_of::<RawLater>();
        let more = (have + TRACE_STEP).min(TRACE_SAMPLED);
        let at = tables.trace(slot).cast::<u8>();
        let at = at.add(offset_of!(RawTrace, later) + have * entry);
        if reserve_disk(tables, at, (more - have) * entry) {
            *room = more as u32;
        }
        *room as usize
    }
}

/// Has the kernel give `bytes` bytes of the file from `at` on room. After a refusal no more is asked for.
unsafe fn reserve_disk(tables: &Tables, at: *mut u8, bytes: usize) -> bool {
    // SAFETY: the caller's tables.
    unsafe {
        let full = AtomicU64::from_ptr(&raw mut (*tables.header()).full);
        if full.load(Relaxed) == 0 && !populate_pages(at, bytes) {
            full.store(1, Relaxed);
        }
        full.load(Relaxed) == 0
    }
}

unsafe fn populate_pages(at: *mut u8, bytes: usize) -> bool {
    /// Linux 5.14: like a write of each page, but an error takes the place of the signal. Older kernels know no such call:
    /// what the disk has no room for ends the program there.
    const POPULATE_WRITE: usize = 23;
    let first = at as usize & !4095;
    let bytes = (at as usize + bytes).next_multiple_of(4096) - first;
    // SAFETY: the range lies in the caller's tables, whose content stays as it is.
    let result = unsafe { sys::call(libc::SYS_madvise, [first, bytes, POPULATE_WRITE, 0, 0, 0]) };
    result == 0 || result == -(libc::EINVAL as isize)
}

/// Makes the room that a profile begins with; says whether there is any.
pub unsafe fn reserve_header(tables: &Tables) -> bool {
    let all = [REGIONS, NODES, PASSAGES];
    // SAFETY: the caller's tables. Before the header has room nothing can be noted in it.
    unsafe {
        let first = tables.first();
        populate_pages(tables.base, 4096)
            && populate_pages(tables.block(0), TIMES_OFFSET)
            && all.into_iter().all(|table| has_room(tables, table, 0))
            && has_active(&first, 0)
            && has_times(&first, 0)
    }
}
