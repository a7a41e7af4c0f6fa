//! The lines and pages that a codelet reaches.

use crate::metrics::reuse::sampled;
use crate::metrics::values::Values;
use cere_format::PAGE;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of a line.
pub const LINE: u64 = 64;
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    /// A bit for each byte.
    bytes: u64,
    written: bool,
}

/// What all threads touched, in one of `2^bits` lines.
#[derive(Debug, Default)]
pub struct Footprint {
    bits: u32,
    lines: FxHashMap<u64, Touched>,
    pages: FxHashSet<u64>,
    last_page: Option<u64>,
    accesses: u64,
}

impl Footprint {
    /// Of one of `2^bits` lines.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self {
            bits,
            ..Self::default()
        }
    }

    /// The bytes `from..to` of `line` are read, or written.
    #[inline]
    pub fn touch(&mut self, line: u64, from: u64, to: u64, written: bool) {
        let page = line / (PAGE / LINE);
        if self.last_page != Some(page) {
            self.last_page = Some(page);
            self.pages.insert(page);
        }
        self.accesses += 1;
        if !sampled(line, self.bits) {
            return;
        }
        let touched = self.lines.entry(line).or_default();
        touched.bytes |= u64::MAX >> (LINE - (to - from)) << from;
        touched.written |= written;
    }

    /// Writes the metrics of the group.
    pub fn fill(&self, values: &mut Values) {
        let lines = self.lines.len() as u64;
        values.set("footprint_lines", (lines << self.bits) as f64);
        values.set("footprint_pages", self.pages.len() as f64);
        let none = match self.pages.is_empty() {
            true => "it reaches no memory",
            false => "no line of it is in the sample",
        };
        let written = self.lines.values().filter(|l| l.written).count() as u64;
        let bytes = self.lines.values().map(|l| u64::from(l.bytes.count_ones()));
        values.share("footprint_written", written, lines, none);
        values.share("footprint_density", bytes.sum(), lines, none);
        values.share("accesses_per_line", self.accesses, lines << self.bits, none);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_lines() {
        let mut footprint = Footprint::new(0);
        // Every second double of 128 lines, the first half of them written; twice.
        for _ in 0..2 {
            for i in 0..512 {
                let address = 0x5000 + 16 * i;
                let (line, from) = (address / LINE, address % LINE);
                footprint.touch(line, from, from + 8, i < 256);
            }
        }
        let mut values = Values::default();
        footprint.fill(&mut values);
        let value = |name: &str| values.value(name).unwrap();
        assert_eq!(
            (value("footprint_lines"), value("footprint_pages")),
            (128.0, 2.0)
        );
        assert_eq!(
            (value("footprint_written"), value("footprint_density")),
            (0.5, 32.0)
        );
        assert_eq!(value("accesses_per_line"), 8.0);
        footprint.touch(1, 0, LINE, false);
        assert_eq!(footprint.lines[&1].bytes, u64::MAX);
    }
}
