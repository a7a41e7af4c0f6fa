//! What recompiled code that tells its stores (the pass, `types.cpp`) has stored last, in units of four bytes: floating
//! point or not. What it stored stands beside it, so that a change by other code is noticed.

use crate::glue::{cere_glue_store, cere_glue_typed};
use crate::pages::{PAGE, Page, Pages};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

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

/// A cell for every four bytes of captured memory: the content below, what it is above.
struct Cells {
    pages: Vec<u64>,
    start: *mut u64,
}

// SAFETY: cells are written by atomic accesses, and what the region left is read when it rests.
unsafe impl Sync for Cells {}
// SAFETY: as above.
unsafe impl Send for Cells {}

static CELLS_OF: OnceLock<Cells> = OnceLock::new();

impl Cells {
    fn at(&self, address: u64) -> Option<*mut u64> {
        let page = self.pages.binary_search(&(address & !(PAGE - 1))).ok()? as u64;
        let cell = page * CELLS + (address % PAGE) / 4;
        // SAFETY: as many cells as the pages have.
        Some(unsafe { self.start.add(cell as usize) })
    }
}

/// Called behind every store.
extern "C" fn stored(place: u64, size: u64, what: u64) {
    let Some(cells) = CELLS_OF.get() else { return };
    let whole = place.is_multiple_of(4) && size.is_multiple_of(4);
    let from = (what >= COPIED && whole && what.is_multiple_of(4)).then_some(what);
    let mut at = place & !3;
    while at < place.saturating_add(size) {
        if let Some(cell) = cells.at(at) {
            let kind = match from {
                Some(from) => cells.at(from + (at - place)).map_or(OTHER, |source| {
                    // SAFETY: a cell; overlapping copies are seen behind the copy, and told by the content.
                    unsafe { AtomicU64::from_ptr(source) }.load(SeqCst) >> 32
                }),
                None if !whole || what >= COPIED => OTHER,
                None => what,
            };
            // SAFETY: the region has just stored there, and `at` is aligned; a cell is the threads' in common.
            let (now, cell) = unsafe {
                let now = AtomicU32::from_ptr(at as *mut u32);
                (now, AtomicU64::from_ptr(cell))
            };
            // Another thread may store there between a look and the note of it.
            loop {
                let content = now.load(SeqCst);
                cell.store(kind << 32 | u64::from(content), SeqCst);
                if now.load(SeqCst) == content {
                    break;
                }
            }
        }
        at += 4;
    }
}

/// Before the first run; nothing happens if the code does not tell.
pub fn listen(pages: &Pages) -> Result<(), String> {
    // SAFETY: the glue's word.
    let typed = unsafe { (&raw const cere_glue_typed).read() };
    if typed == 0 {
        return Ok(());
    }
    let pages: Vec<u64> = pages.all.iter().map(Page::start).collect();
    let size = (pages.len().max(1) as u64 * CELLS * 8) as usize;
    // SAFETY: fresh memory, of which only what is used takes up room.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(format!(
            "no memory for the types of what is stored: {}",
            std::io::Error::last_os_error()
        ));
    }
    let _ = CELLS_OF.set(Cells {
        pages,
        start: start.cast(),
    });
    // SAFETY: the glue's word, before anything reads it.
    unsafe { cere_glue_store = stored as *const () as u64 };
    Ok(())
}

/// What the two halves of the word at `address`, which holds `word` now, were stored as; none if the code does not tell.
pub fn kinds(address: u64, word: u64) -> Option<[Kind; 2]> {
    let cells = CELLS_OF.get()?;
    let half = |at: u64, content: u32| {
        // SAFETY: a cell.
        let cell = cells.at(at).map_or(0, |c| unsafe { *c });
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

/// Whether the code tells what it stores.
pub fn told() -> bool {
    CELLS_OF.get().is_some()
}
