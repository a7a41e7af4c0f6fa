//! Cache lines: thrown out of every cache, read, written without a change.

use crate::pages::PAGE;
use crate::space;
use cere_arch::lines::{self, Flush};
use cere_format::capture::traced_lines;

/// Takes the processor for one that cannot flush by address when this variable of the environment is set.
pub const ENV_NO_FLUSH: &str = "CERE_REPLAY_NO_FLUSH";

/// What the processor can do with lines.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    /// Bytes of a line.
    size: u64,
    flush: Option<Flush>,
}

impl Lines {
    /// Asks this processor.
    pub fn new() -> Self {
        let size = lines::size();
        let flush = match std::env::var_os(ENV_NO_FLUSH) {
            Some(_) => None,
            None => lines::flush(),
        };
        Self {
            size: if size.is_power_of_two() { size } else { 64 },
            flush,
        }
    }

    /// Whether lines can be flushed by address.
    pub fn can_flush(&self) -> bool {
        self.flush.is_some()
    }

    /// `ranges` with the whole of their first and last lines.
    pub fn whole(&self, ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mask = self.size - 1;
        let whole = |r: &(u64, u64)| (r.0 & !mask, r.1.saturating_add(mask) & !mask);
        ranges.iter().map(whole).collect()
    }

    fn each(&self, (start, end): (u64, u64)) -> impl Iterator<Item = u64> + use<> {
        (start & !(self.size - 1)..end).step_by(self.size as usize)
    }

    /// Throws the lines of `ranges` out of every cache of every core. Nothing happens where that cannot be done.
    ///
    /// # Safety
    /// The ranges are mapped for reading.
    pub unsafe fn flush(&self, ranges: &[(u64, u64)]) {
        let Some(flush) = self.flush else { return };
        for line in ranges.iter().flat_map(|range| self.each(*range)) {
            // SAFETY: a readable address, as the caller says.
            unsafe { flush.line(line) };
        }
        lines::settle();
    }

    /// Reads every line of `range`.
    ///
    /// # Safety
    /// It is mapped for reading.
    pub unsafe fn read(&self, range: (u64, u64)) {
        for line in self.each(range) {
            // SAFETY: an address of the range, which is mapped for reading, by the contract.
            unsafe { std::ptr::read_volatile(line.max(range.0) as *const u8) };
        }
    }

    /// Writes every line of `range` with what it holds.
    ///
    /// # Safety
    /// It is mapped for writing, and nobody else writes it now.
    pub unsafe fn write(&self, range: (u64, u64)) {
        for line in self.each(range) {
            let at = line.max(range.0) as *mut u8;
            // SAFETY: an address of the range, which is mapped for writing and nobody else's, by the contract.
            unsafe { std::ptr::write_volatile(at, std::ptr::read_volatile(at)) };
        }
    }

    /// Reads, or writes with what they hold, the part of a page's lines that a trace's page in use stands for.
    ///
    /// # Safety
    /// The page is mapped for reading, and for writing if it is to be written; nobody else writes it now.
    pub unsafe fn touch_part(&self, page: u64, write: bool) {
        for line in traced_lines(page, PAGE, self.size, true) {
            let range = (page + line, page + line + 1);
            // SAFETY: within the page, by the contract.
            unsafe {
                match write {
                    true => self.write(range),
                    false => self.read(range),
                }
            }
        }
    }
}

/// Makes the kernel flush this process's translations: it flushes all of them when more than some tens of pages go
/// at once (x86: `tlb_single_page_flush_ceiling`, 33). Best effort: without memory nothing happens.
pub fn flush_translations() {
    const BYTES: usize = 128 * 4096;
    if let Some(area) = space::fresh(BYTES, libc::MAP_POPULATE) {
        // SAFETY: a mapping of its own, which nobody else knows.
        unsafe { libc::syscall(libc::SYS_munmap, area, BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_changes_nothing() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
        let copy = bytes.clone();
        let start = bytes.as_ptr() as u64;
        let range = (start + 3, start + 9_999);
        let lines = Lines::new();
        // SAFETY: a buffer of this test.
        unsafe {
            lines.write(range);
            lines.read(range);
            lines.flush(&[range]);
        }
        assert_eq!(bytes, copy);
        let touched: Vec<u64> = lines.each((130, 300)).collect();
        let expected: Vec<u64> = (130 & !(lines.size - 1)..300)
            .step_by(lines.size as usize)
            .collect();
        assert_eq!(touched, expected);
        flush_translations();
    }
}
