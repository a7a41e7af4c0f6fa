//! The captured memory at entry, as far as a package has it.

use crate::{ReplayError, check};
use cere_format::capture::{
    Mapping, PAGE_ABSENT, PAGE_CODE, PAGE_ENTRY_STORED, PAGE_FOREIGN, PAGE_STACK, PageRecord,
};
use cere_format::package::{MEMBER_ENTRY, MEMBER_TABLE, Manifest};
use cere_toolchain::io;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Memory around an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// [start, end).
    pub range: (u64, u64),
    /// Whether it is a variable, or a block of an allocator; if not, the captured pages side by side.
    pub block: bool,
}

/// An unpacked package's memory at entry.
pub struct Captured<'a> {
    manifest: &'a Manifest,
    pages: Vec<PageRecord>,
    /// Place of each page among those with content.
    places: Vec<u64>,
    entry: File,
}

impl<'a> Captured<'a> {
    /// Reads the table of pages. Fails for a manifest that no capture writes.
    pub fn open(package: &Path, manifest: &'a Manifest) -> Result<Self, ReplayError> {
        check::check(manifest)?;
        let table = package.join(MEMBER_TABLE);
        let bytes = std::fs::read(&table).map_err(io("read", &table))?;
        let pages = cere_package::io::decode_table(MEMBER_TABLE, &bytes, manifest.page_size)
            .map_err(|wrong| ReplayError::Hostile(wrong.to_string()))?;
        let mut stored = 0;
        let places = pages
            .iter()
            .map(|p| {
                stored += u64::from(p.flags & PAGE_ENTRY_STORED != 0);
                stored
            })
            .collect();
        let path = package.join(MEMBER_ENTRY);
        let entry = File::open(&path).map_err(io("open", &path))?;
        Ok(Self {
            manifest,
            pages,
            places,
            entry,
        })
    }

    fn index(&self, address: u64) -> Option<usize> {
        let page = address & !(self.manifest.page_size - 1);
        self.pages.binary_search_by_key(&page, |p| p.address).ok()
    }

    /// The aligned word at `address` at entry; none if the package does not have it.
    pub fn word(&self, address: u64) -> Option<u64> {
        let size = self.manifest.page_size;
        let at = self.index(address).filter(|_| address.is_multiple_of(8))?;
        if self.pages[at].flags & PAGE_ENTRY_STORED == 0 {
            return Some(0);
        }
        let mut word = [0; 8];
        let offset = (self.places[at] - 1) * size + address % size;
        self.entry.read_exact_at(&mut word, offset).ok()?;
        Some(u64::from_le_bytes(word))
    }
    /// The parts of [start, end) that were in memory at entry and that the package has.
    pub fn present(&self, (start, end): (u64, u64)) -> Vec<(u64, u64)> {
        let size = self.manifest.page_size;
        let first = self
            .pages
            .partition_point(|p| p.address.saturating_add(size) <= start);
        let pages = self.pages[first..].iter().take_while(|p| p.address < end);
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for page in pages.filter(|p| p.flags & PAGE_ABSENT == 0) {
            let part = (page.address.max(start), (page.address + size).min(end));
            match parts.last_mut() {
                Some(last) if last.1 == part.0 => last.1 = part.1,
                _ => parts.push(part),
            }
        }
        parts
    }

    /// What `address` lies in: a variable, a block of an allocator that begins there, else the captured pages side by side.
    /// Nothing on the stack, where nothing tells one object from the next, in code, or where the package has nothing.
    pub fn around(&self, address: u64) -> Option<Found> {
        let inside = |range: (u64, u64)| range.0 <= address && address < range.1;
        let at = self.index(address)?;
        if self.pages[at].flags & (PAGE_STACK | PAGE_CODE | PAGE_FOREIGN) != 0 {
            return None;
        }
        let variables = self.manifest.variables.iter();
        let mut variables = variables.map(|v| (v.address, v.address.saturating_add(v.size)));
        if let Some(range) = variables.find(|range| inside(*range)) {
            return Some(Found { range, block: true });
        }
        let mapping = self.manifest.mappings.iter();
        let mapping = mapping.clone().find(|m| inside((m.start, m.end)));
        let block = match inside(self.manifest.heap) {
            true => self.region_block(address),
            false => mapping.and_then(|m| self.block(address, m)),
        };
        if let Some(range) = block {
            return Some(Found { range, block: true });
        }
        let limits = mapping.map_or((0, u64::MAX), |m| (m.start, m.end));
        Some(Found {
            range: self.side_by_side(at, limits),
            block: false,
        })
    }

    /// A block of the region heap (`cere-inside` (`heap`)): its size is in the word two before it. An aligned one has the place of the
    /// block around it there, marked by the highest bit, and its own size in the next word.
    fn region_block(&self, address: u64) -> Option<(u64, u64)> {
        const ALIGNED: u64 = 1 << 63;
        let head = self.word(address.checked_sub(16)?)?;
        let bytes = match head & ALIGNED {
            0 => head,
            _ => self.word(address - 8)?,
        };
        let end = address.checked_add(bytes)?;
        (bytes > 0 && end <= self.manifest.heap.1).then_some((address, end))
    }

    /// A block of the C library: the word before it has its size and flags (bit 1: mapped of its own), and the block behind it
    /// says that it is in use.
    fn block(&self, address: u64, mapping: &Mapping) -> Option<(u64, u64)> {
        const HEAD: u64 = 16;
        if !address.is_multiple_of(HEAD) || !(mapping.path.is_empty() || mapping.path == "[heap]") {
            return None;
        }
        let start = address.checked_sub(HEAD)?;
        let word = self.word(address - 8)?;
        let size = word & !7;
        let end = start.checked_add(size)?;
        if size < 2 * HEAD || !size.is_multiple_of(HEAD) || end > mapping.end {
            return None;
        }
        if word & 2 != 0 {
            let whole = end.is_multiple_of(self.manifest.page_size);
            return whole.then_some((address, end));
        }
        // The word behind may lie on a page that the invocation did not touch.
        let behind = end.checked_add(8)?;
        let used = self.word(behind).is_none_or(|next| next & 1 != 0);
        used.then_some((address, behind))
    }

    /// Captured pages of the kind of the one at `at`, without a gap, within `limits`.
    fn side_by_side(&self, at: usize, limits: (u64, u64)) -> (u64, u64) {
        let size = self.manifest.page_size;
        let apart = PAGE_STACK | PAGE_CODE | PAGE_FOREIGN;
        let follows = |a: &PageRecord, b: &PageRecord| {
            a.address + size == b.address && (a.flags | b.flags) & apart == 0
        };
        let before = self.pages[..=at].windows(2).rev();
        let first = at - before.take_while(|w| follows(&w[0], &w[1])).count();
        let after = self.pages[at..].windows(2);
        let last = at + after.take_while(|w| follows(&w[0], &w[1])).count();
        let (start, end) = (self.pages[first].address, self.pages[last].address + size);
        (start.max(limits.0), end.min(limits.1))
    }
}
