//! What a package keeps of the captured pages.

use crate::PackError;
use crate::raw::{Kept, Raw};
use cere_format::capture::*;

/// The page table of the package and the pages behind it.
pub struct Pages {
    /// The table.
    pub table: Vec<PageRecord>,
    /// Pages at entry.
    pub entry: Kept,
    /// Pages at exit.
    pub exit: Kept,
}

/// Reads all pages once: leaves out what is zero, and the exit state of memory that is not compared, dead stack among it;
/// zeroes the `zeroed` address ranges; shows every page at entry that is kept to `look`.
pub fn reduce(
    raw: &Raw,
    zeroed: &[(u64, u64)],
    mut look: impl FnMut(&PageRecord, &[u8]),
) -> Result<Pages, PackError> {
    let page_size = raw.capture.page_size;
    let mut pages = Pages {
        table: Vec::with_capacity(raw.table.len()),
        entry: Kept::default(),
        exit: Kept::default(),
    };
    for &(start, end) in zeroed {
        let mut at = start;
        while at < end {
            let page = at & !(page_size - 1);
            let stop = end.min(page + page_size);
            if let Some(index) = raw.index(at) {
                let range = ((at - page) as usize, (stop - page) as usize);
                for kept in [&mut pages.entry, &mut pages.exit] {
                    kept.zeroed.entry(index).or_default().push(range);
                }
            }
            at = stop;
        }
    }
    let (mut entries, mut exits) = (raw.entry.reader(), raw.exit.reader());
    for (index, record) in raw.table.iter().enumerate() {
        let mut record = *record;
        let dead = record.flags & PAGE_STACK != 0
            && record.address + page_size <= raw.capture.entry.stack_pointer;
        if let Some(page) = entries.page(index)? {
            pages.entry.patch(index, page);
            if nonzero(page) {
                // What calls left below the stack pointer is restored, but nobody follows its addresses.
                if !dead {
                    look(&record, page);
                }
                pages.entry.indices.push(index);
            } else {
                record.flags &= !PAGE_ENTRY_STORED;
            }
        } else {
            record.flags &= !PAGE_ENTRY_STORED;
        }
        let compared = !dead && record.flags & PAGE_FOREIGN == 0;
        let exit = if compared { exits.page(index)? } else { None };
        let kept = exit.is_some_and(|page| {
            pages.exit.patch(index, page);
            nonzero(page)
        });
        if kept {
            pages.exit.indices.push(index);
        } else {
            record.flags &= !PAGE_EXIT_STORED;
        }
        pages.table.push(record);
    }
    Ok(pages)
}

fn nonzero(page: &[u8]) -> bool {
    page.as_chunks::<8>().0.iter().any(|w| *w != [0; 8])
}
