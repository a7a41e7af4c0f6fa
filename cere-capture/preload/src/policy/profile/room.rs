//! Room on the disk for the profile. Without room on the disk, a write to a page of a file mapping raises SIGBUS, here in the
//! program. So the kernel is asked for each page first.

use super::tables::Tables;
use crate::os::sys;
use cere_format::profile_raw::*;
use std::mem::offset_of;

/// Bytes that a table grows by.
const STEP: usize = 64 << 10;
/// Invocations that a trace grows by.
const TRACE_STEP: usize = 512;

/// A table of the profile, and where the header counts the entries that it has room for.
#[derive(Clone, Copy)]
pub struct Table {
    offset: usize,
    entry: usize,
    most: usize,
    room: usize,
}

pub const REGIONS: Table = Table {
    offset: REGIONS_OFFSET,
    entry: size_of::<RawRegion>(),
    most: RAW_REGIONS,
    room: offset_of!(RawHeader, regions_room),
};
pub const NODES: Table = Table {
    offset: NODES_OFFSET,
    entry: size_of::<RawNode>(),
    most: RAW_NODES,
    room: offset_of!(RawHeader, nodes_room),
};
pub const ACTIVE: Table = Table {
    offset: ACTIVE_OFFSET,
    entry: size_of::<RawActive>(),
    most: RAW_DEPTH,
    room: offset_of!(RawHeader, active_room),
};
pub const PASSAGES: Table = Table {
    offset: PASSAGES_OFFSET,
    entry: size_of::<RawPassage>(),
    most: RAW_PASSAGES,
    room: offset_of!(RawHeader, passages_room),
};

/// Whether a table has room for its entry `index`, which is made where there is none.
#[inline(always)]
pub unsafe fn has_room(tables: &Tables, table: Table, index: usize) -> bool {
    // SAFETY: the caller's tables; the header has a word at `table.room`.
    unsafe {
        let room = tables.base.add(table.room).cast::<u64>();
        index < *room as usize || grow_table(tables, table, room, index)
    }
}

#[cold]
unsafe fn grow_table(tables: &Tables, table: Table, room: *mut u64, index: usize) -> bool {
    let most = (index + 1 + STEP / table.entry).min(table.most);
    // SAFETY: the caller's tables; the range lies in the table.
    unsafe {
        let (from, to) = (*room as usize * table.entry, most * table.entry);
        if index >= table.most || !reserve_disk(tables, table.offset + from, to - from) {
            return false;
        }
        *room = most as u64;
    }
    true
}

/// Whether the trace of the region at `slot` has room for the time of invocation `position` + 1.
#[inline(always)]
pub unsafe fn holds_first(tables: &Tables, slot: usize, position: usize) -> bool {
    // SAFETY: the caller's tables, whose region `slot` is in use.
    unsafe {
        let room = &raw mut (*tables.region(slot)).first_room;
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
        let at = trace_at(slot);
        if !reserve_disk(tables, at + first, until - first)
            || !reserve_disk(tables, at + starts + from * 8, (most - from) * 8)
        {
            return false;
        }
        *room = most as u32;
    }
    true
}

/// Later invocations that the trace of the region at `slot` has room for, more than `kept` if more can be had.
pub unsafe fn later(tables: &Tables, slot: usize, kept: usize) -> usize {
    // SAFETY: the caller's tables, whose region `slot` is in use; the range lies in its trace.
    unsafe {
        let room = &raw mut (*tables.region(slot)).later_room;
        let have = *room as usize;
        if kept < have || have == TRACE_SAMPLED {
            return have;
        }
        let entry = size_of::<RawLater>();
        let more = (have + TRACE_STEP).min(TRACE_SAMPLED);
        let at = trace_at(slot) + offset_of!(RawTrace, later) + have * entry;
        if reserve_disk(tables, at, (more - have) * entry) {
            *room = more as u32;
        }
        *room as usize
    }
}

const fn trace_at(slot: usize) -> usize {
    TRACES_OFFSET + slot * size_of::<RawTrace>()
}

/// Has the kernel give `bytes` bytes from `offset` on room in the file. After a refusal no more is asked for.
unsafe fn reserve_disk(tables: &Tables, offset: usize, bytes: usize) -> bool {
    // SAFETY: the caller's tables.
    unsafe {
        let header = tables.header();
        if (*header).full == 0 && !populate_pages(tables, offset, bytes) {
            (*header).full = 1;
        }
        (*header).full == 0
    }
}

unsafe fn populate_pages(tables: &Tables, offset: usize, bytes: usize) -> bool {
    /// Linux 5.14: like a write of each page, but an error takes the place of the signal. Older kernels know no such call:
    /// what the disk has no room for ends the program there.
    const POPULATE_WRITE: usize = 23;
    let first = offset & !4095;
    let bytes = (offset + bytes).next_multiple_of(4096) - first;
    let at = tables.base as usize + first;
    // SAFETY: the range lies in the caller's tables, whose content stays as it is.
    let result = unsafe { sys::call(libc::SYS_madvise, [at, bytes, POPULATE_WRITE, 0, 0, 0]) };
    result == 0 || result == -(libc::EINVAL as isize)
}

/// Makes the room that a profile begins with; says whether there is any.
pub unsafe fn reserve_header(tables: &Tables) -> bool {
    let all = [REGIONS, NODES, ACTIVE, PASSAGES];
    // SAFETY: the caller's tables. Before the header has room nothing can be noted in it.
    unsafe {
        populate_pages(tables, 0, 4096)
            && populate_pages(tables, ELSEWHERE_OFFSET, TRACES_OFFSET - ELSEWHERE_OFFSET)
            && all.into_iter().all(|table| has_room(tables, table, 0))
    }
}
