//! The page trace.

use super::table::check_page_size;
use cere_format::FormatError;
use cere_format::capture::{TRACE_AGE_SHIFT, TRACE_PAGE, TRACE_THREAD_SHIFT, TRACE_THREADS};

/// Bytes of an entry on disk.
pub const TRACE_LENGTH: u64 = 8;

/// A page trace as bytes on disk.
pub fn encode_trace(trace: &[u64]) -> Vec<u8> {
    trace.iter().flat_map(|entry| entry.to_le_bytes()).collect()
}

/// Reads and validates a page trace: whole pages, each once, with threads only of an OpenMP runtime (`team`). `what` names it
/// in errors.
pub fn decode_trace(
    what: &str,
    bytes: &[u8],
    page_size: u64,
    team: bool,
) -> Result<Vec<u64>, FormatError> {
    check_page_size(what, page_size)?;
    let (words, rest) = bytes.as_chunks::<{ TRACE_LENGTH as usize }>();
    if !rest.is_empty() {
        return Err(FormatError::TooShort {
            what: "page trace",
            offset: (bytes.len() - rest.len()) as u64,
            needed: TRACE_LENGTH,
            available: rest.len() as u64,
        });
    }
    let trace: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let bad = |number: usize, why| {
        Err(FormatError::Invalid {
            what: format!("{what}, entry {number} at offset {}", number * 8),
            field: "page",
            value: format!("{:#x}", trace[number]),
            why,
        })
    };
    let address = |number: &usize| trace[*number] & TRACE_PAGE;
    for (number, entry) in trace.iter().enumerate() {
        let thread = entry >> TRACE_THREAD_SHIFT & TRACE_THREADS;
        if !address(&number).is_multiple_of(page_size) {
            return bad(number, "it is a multiple of the page size");
        }
        if !team && thread != 0 {
            return bad(number, "without an OpenMP runtime there is one thread");
        }
        if address(&number) + page_size >= 1 << TRACE_AGE_SHIFT {
            return bad(number, "the page ends beyond the program's address space");
        }
    }
    let mut order: Vec<usize> = (0..trace.len()).collect();
    order.sort_by_key(address);
    let twice = |pair: &&[usize]| address(&pair[0]) == address(&pair[1]);
    match order.windows(2).find(twice) {
        Some(pair) => bad(pair[1], "a page is traced once, where it was touched last"),
        None => Ok(trace),
    }
}
