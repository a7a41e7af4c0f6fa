//! The page table.

use super::layout::RECORD_LENGTH;
use cere_format::FormatError;
use cere_format::capture::{
    PAGE_ABSENT, PAGE_CODE, PAGE_ENTRY_STORED, PAGE_EXIT_STORED, PAGE_FLAGS, PAGE_FOREIGN,
    PAGE_STACK, PAGE_WRITTEN, PageRecord,
};

/// The page table as bytes on disk.
pub fn encode_table(pages: &[PageRecord]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pages.len() * RECORD_LENGTH as usize);
    for page in pages {
        bytes.extend_from_slice(&page.address.to_le_bytes());
        bytes.extend_from_slice(&page.flags.to_le_bytes());
        bytes.extend_from_slice(&page.thread.to_le_bytes());
    }
    bytes
}

/// Reads and validates a page table: rising, aligned, known flags. `what` names it in errors.
pub fn decode_table(
    what: &str,
    bytes: &[u8],
    page_size: u64,
) -> Result<Vec<PageRecord>, FormatError> {
    check_page_size(what, page_size)?;
    let (records, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(FormatError::TooShort {
            what: "page table",
            offset: (bytes.len() - rest.len()) as u64,
            needed: RECORD_LENGTH,
            available: rest.len() as u64,
        });
    }
    let mut pages: Vec<PageRecord> = Vec::with_capacity(records.len());
    for (number, record) in records.iter().enumerate() {
        let half = |at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let page = PageRecord {
            address: u64::from(half(0)) | u64::from(half(4)) << 32,
            flags: half(8),
            thread: half(12),
        };
        let bad = |field, value: u64, why| {
            Err(FormatError::Invalid {
                what: format!("{what}, record {number} at offset {}", number * 16),
                field,
                value: format!("{value:#x}"),
                why,
            })
        };
        if !page.address.is_multiple_of(page_size) {
            return bad(
                "address",
                page.address,
                "pages are aligned to the page size",
            );
        }
        if page.address.checked_add(page_size).is_none() {
            return bad(
                "address",
                page.address,
                "the page ends beyond the address space",
            );
        }
        if pages
            .last()
            .is_some_and(|last| last.address >= page.address)
        {
            return bad("address", page.address, "addresses rise");
        }
        if page.flags & !PAGE_FLAGS != 0 {
            return bad(
                "flags",
                page.flags.into(),
                "this version knows no such flag",
            );
        }
        if page.flags & PAGE_EXIT_STORED != 0 && page.flags & PAGE_WRITTEN == 0 {
            return bad(
                "flags",
                page.flags.into(),
                "only written pages have a state at exit",
            );
        }
        let held = PAGE_ENTRY_STORED | PAGE_CODE | PAGE_STACK | PAGE_FOREIGN;
        if page.flags & PAGE_ABSENT != 0 && page.flags & held != 0 {
            return bad(
                "flags",
                page.flags.into(),
                "a page that was not in memory held nothing",
            );
        }
        pages.push(page);
    }
    Ok(pages)
}

pub(super) fn check_page_size(what: &str, page_size: u64) -> Result<(), FormatError> {
    if !page_size.is_power_of_two() || !(4096..=1 << 21).contains(&page_size) {
        return Err(FormatError::Invalid {
            what: what.into(),
            field: "page_size",
            value: page_size.to_string(),
            why: "it is a power of two from 4096 to 2 MiB",
        });
    }
    Ok(())
}

pub(super) fn stored(pages: &[PageRecord], flag: u32) -> u64 {
    pages.iter().filter(|page| page.flags & flag != 0).count() as u64
}
