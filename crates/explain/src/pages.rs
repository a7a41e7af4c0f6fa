//! Which of a codelet's pages can share frames: what they hold may be anything of their kind, and the code does the same.

use crate::order::Use;
use anyhow::{Context, Result};
use cere_format::PAGE;
use cere_format::capture::{
    PAGE_ABSENT, PAGE_CODE, PAGE_ENTRY_STORED, PAGE_FOREIGN, PAGE_FRESH, PAGE_STACK, PageRecord,
};
use cere_format::package::{MEMBER_ENTRY, MEMBER_TABLE, Manifest, addresses_in};
use cere_package::io::decode_table;
use std::collections::BTreeSet;
use std::path::Path;

/// What is not the program's data.
const OTHERS: u32 = PAGE_CODE | PAGE_FOREIGN | PAGE_STACK | PAGE_FRESH | PAGE_ABSENT;

/// Ranges, at most: each has a frame at least, and all of them fit into the smallest first cache.
const MOST: usize = 6;

/// The region's pages.
pub struct Table {
    pages: Vec<PageRecord>,
    /// Those that hold an address of a captured page, by rising address.
    pointing: BTreeSet<u64>,
}

impl Table {
    /// Of the unpacked package in `package`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(package: &Path, manifest: &Manifest) -> Result<Self> {
        let read = |name: &str| {
            let path = package.join(name);
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let pages = decode_table(MEMBER_TABLE, &read(MEMBER_TABLE)?, manifest.page_size)?;
        let known: BTreeSet<u64> = pages.iter().map(|p| p.address).collect();
        let captured = |address: u64| known.contains(&(address & !(PAGE - 1)));
        let content = match package.join(MEMBER_ENTRY).exists() {
            true => read(MEMBER_ENTRY)?,
            false => Vec::new(),
        };
        let stored = pages.iter().filter(|p| p.flags & PAGE_ENTRY_STORED != 0);
        let holds = |bytes: &[u8]| {
            let words = bytes
                .as_chunks::<8>()
                .0
                .iter()
                .map(|w| u64::from_le_bytes(*w));
            words
                .flat_map(addresses_in)
                .any(|a| a >= PAGE && captured(a))
        };
        let both = stored.zip(content.chunks(PAGE as usize));
        let pointing = both.filter(|(_, bytes)| holds(bytes));
        Ok(Self {
            pointing: pointing.map(|(page, _)| page.address).collect(),
            pages,
        })
    }

    /// Pages that were not there at entry.
    #[must_use]
    pub fn absent(&self) -> u64 {
        self.pages
            .iter()
            .filter(|p| p.flags & PAGE_ABSENT != 0)
            .count() as u64
    }

    /// Ranges of pages that may share frames, in the order in which it should be tried: all data without addresses, then pages with
    /// nothing but floating-point values. Pages that are written and pages that are not have frames of their own.
    #[must_use]
    pub fn compactable(&self, used: &[(u64, Use)], manifest: &Manifest) -> Vec<Vec<(u64, u64)>> {
        let heap = manifest.heap.0..manifest.heap.1;
        let data = |at: u64| {
            let found = self.pages.binary_search_by_key(&at, |p| p.address);
            let page = found.ok().and_then(|place| self.pages.get(place));
            page.is_some_and(|p| p.flags & OTHERS == 0) && !heap.contains(&at)
        };
        let all = || used.iter().filter(|(at, _)| data(*at));
        let plain = ranges(all().filter(|(at, _)| !self.pointing.contains(at)));
        let float = ranges(all().filter(|(_, how)| how.float));
        let mut tries = vec![plain, float];
        tries.dedup();
        tries.retain(|ranges| !ranges.is_empty());
        tries
    }
}

/// Neighbours that are used alike, as ranges.
fn ranges<'a>(pages: impl Iterator<Item = &'a (u64, Use)>) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64, bool)> = Vec::new();
    for &(at, how) in pages {
        match found.last_mut() {
            Some(last) if last.1 == at && last.2 == how.written => last.1 += PAGE,
            _ => found.push((at, at + PAGE, how.written)),
        }
    }
    // Small ones are in the first cache anyway.
    found.sort_unstable_by_key(|(start, end, _)| std::cmp::Reverse(end - start));
    found.truncate(MOST);
    found.sort_unstable();
    found
        .into_iter()
        .map(|(start, end, _)| (start, end))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_used_alike_share_and_the_largest_ranges_count() {
        let page = |number: u64, written| {
            let how = Use {
                times: 1,
                written,
                float: true,
            };
            (number * PAGE, how)
        };
        let pages = [page(1, false), page(2, false), page(3, true), page(9, true)];
        let found = ranges(pages.iter());
        let whole = |from: u64, to: u64| (from * PAGE, to * PAGE);
        assert_eq!(found, [whole(1, 3), whole(3, 4), whole(9, 10)]);
        let apart: Vec<(u64, Use)> = (0..20).map(|n| page(2 * n, false)).collect();
        assert_eq!(ranges(apart.iter()).len(), MOST);
    }
}
