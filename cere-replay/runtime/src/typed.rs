//! The kind of what recompiled code that reports its stores (the pass, `types.cpp`) stored last in each four bytes: floating
//! point or not. The stored value is kept beside it, so that a change by other code is noticed.

use crate::error::Error;
use crate::glue::{cere_glue_store, cere_glue_typed};
use crate::pages::{PAGE, Page, Pages};
use crate::space;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

/// What lies in four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A float.
    Single,
    /// Half of a double.
    Double,
    /// Something else, or unknown.
    Other,
}

/// As the pass says it; from [`COPIED`] on it is an address.
const SINGLE: u64 = 1;
const DOUBLE: u64 = 2;
const OTHER: u64 = 3;
const COPIED: u64 = 4096;
/// Cells of a page.
const CELLS: u64 = PAGE / 4;

/// A cell for every four bytes of captured memory: the content below, what it is above. Found by two tables, as each store
/// asks: one entry a GiB, then one a page of it.
pub struct Cells {
    groups: Vec<*const *mut u64>,
    /// Whether threads store at the same time.
    several: bool,
}

const GROUP_BITS: u32 = 30;
/// Pages of a group.
const GROUP: usize = (1 << GROUP_BITS) / PAGE as usize;
/// Groups of the addresses that programs have.
const GROUPS: usize = 1 << (47 - GROUP_BITS);

// SAFETY: cells are written by atomic accesses, and what the region left is read when it rests; the tables stay as they are.
unsafe impl Sync for Cells {}
// SAFETY: cells are written by atomic accesses; the tables stay as they are.
unsafe impl Send for Cells {}

static CELLS_OF: OnceLock<Cells> = OnceLock::new();

impl Cells {
    /// With cells for `pages`, by rising address.
    pub fn new(pages: &[u64], several: bool) -> Result<Self, Error> {
        let cells = memory(pages.len().max(1) * CELLS as usize)?;
        let none = memory(GROUP)?.cast::<*mut u64>();
        let mut groups: Vec<*const *mut u64> = vec![none; GROUPS];
        for (number, page) in pages.iter().enumerate() {
            let group = (page >> GROUP_BITS) as usize;
            if groups[group] == none {
                groups[group] = memory(GROUP)?.cast::<*mut u64>();
            }
            let at = (page / PAGE) as usize % GROUP;
            // SAFETY: a group has as many entries, and there are as many cells as the pages have.
            unsafe {
                let own = cells.add(number * CELLS as usize);
                groups[group].cast_mut().add(at).write(own);
            }
        }
        Ok(Self { groups, several })
    }

    /// The cell of an address, if its page was captured.
    #[inline(always)]
    pub fn at(&self, address: u64) -> Option<&AtomicU64> {
        let group = *self.groups.get((address >> GROUP_BITS) as usize)?;
        // SAFETY: a group has an entry for each of its pages: null, or the page's cells, which stay.
        unsafe {
            let cells = *group.add((address / PAGE) as usize % GROUP);
            if cells.is_null() {
                return None;
            }
            let cell = cells.add((address % PAGE / 4) as usize);
            Some(AtomicU64::from_ptr(cell))
        }
    }
}

/// Fresh memory for so many words, all zero, of which only what is used takes up room.
fn memory(words: usize) -> Result<*mut u64, Error> {
    let start = space::fresh(words * 8, libc::MAP_NORESERVE).map(<*mut _>::cast);
    start.ok_or_else(|| Error::system("no memory for the types of what is stored"))
}

/// Called behind every store.
extern "C" fn stored(place: u64, size: u64, what: u64) {
    let Some(cells) = CELLS_OF.get() else { return };
    let whole = (place | size).is_multiple_of(4);
    let from = (what >= COPIED && whole && what.is_multiple_of(4)).then_some(what);
    let plain = match whole && what < COPIED {
        true => what,
        false => OTHER,
    };
    let end = place.saturating_add(size);
    let mut at = place & !3;
    while at < end {
        if let Some(cell) = cells.at(at) {
            // Overlapping copies are seen after the copy, and noticed by the content.
            let kind = from.map_or(plain, |from| {
                let source = cells.at(from + (at - place));
                source.map_or(OTHER, |source| source.load(Relaxed) >> 32)
            });
            // SAFETY: the region has just stored there, and `at` is aligned.
            let now = unsafe { AtomicU32::from_ptr(at as *mut u32) };
            note(cell, now, kind, cells.several);
        }
        at += 4;
    }
}

#[inline(always)]
fn note(cell: &AtomicU64, now: &AtomicU32, kind: u64, several: bool) {
    if !several {
        cell.store(kind << 32 | u64::from(now.load(Relaxed)), Relaxed);
        return;
    }
    // Another thread may store there between a look and the note of it.
    loop {
        let content = now.load(SeqCst);
        cell.store(kind << 32 | u64::from(content), SeqCst);
        if now.load(SeqCst) == content {
            break;
        }
    }
}

/// Receives reported stores from now on, if the code reports them. Called before the first run. `several`: threads may store
/// at the same time.
pub fn listen(pages: &Pages, several: bool) -> Result<(), Error> {
    // SAFETY: the generator's glue defines the word, which nothing writes.
    let typed = unsafe { (&raw const cere_glue_typed).read() };
    if typed == 0 {
        return Ok(());
    }
    let pages: Vec<u64> = pages.all.iter().map(Page::start).collect();
    let _ = CELLS_OF.set(Cells::new(&pages, several)?);
    // SAFETY: the generator's glue defines the word; the region, which reads it, does not run yet.
    unsafe { cere_glue_store = stored as *const () as u64 };
    Ok(())
}

/// What the two halves of the word at `address`, which holds `word` now, were stored as; none if the code does not report
/// its stores.
pub fn kinds(address: u64, word: u64) -> Option<[Kind; 2]> {
    let cells = CELLS_OF.get()?;
    let half = |at: u64, content: u32| {
        let cell = cells.at(at).map_or(0, |c| c.load(Relaxed));
        match (cell >> 32, cell as u32 == content) {
            (SINGLE, true) => Kind::Single,
            (DOUBLE, true) => Kind::Double,
            _ => Kind::Other,
        }
    };
    Some([
        half(address, word as u32),
        half(address + 4, (word >> 32) as u32),
    ])
}

/// Whether the code reports its stores.
pub fn is_active() -> bool {
    CELLS_OF.get().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_cells_and_others_none() {
        let pages = [
            0x40_0000,
            0x40_1000,
            0x3fff_f000,
            0x4000_0000,
            0x7fff_ffff_e000,
        ];
        let cells = Cells::new(&pages, false).expect("memory");
        let at = |address| cells.at(address).map(AtomicU64::as_ptr);
        let mut seen: Vec<_> = Vec::new();
        for page in pages {
            let first = at(page).expect("a cell");
            // SAFETY: within the page's cells.
            assert_eq!(at(page + 4092), Some(unsafe { first.add(1023) }));
            assert_eq!(at(page + 3), Some(first));
            seen.push(first);
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), pages.len());
        for other in [
            0,
            0x3f_f000,
            0x40_2000,
            0x4000_1000,
            0x7fff_ffff_f000,
            1 << 47,
            u64::MAX,
        ] {
            assert_eq!(at(other), None, "{other:#x}");
        }
    }
}
