//! The pages of the program's memory: the protection that the program gave them, and the one in force.

use super::memory::{Access, Memory, READ, WRITE};
use super::pool::{Did, Page, Pool};
use super::spans::{Span, Spans};
use crate::os::sys::PAGE;

/// Attempts to open everything.
const ROUNDS: u32 = 3;

/// The program's memory under protection.
pub struct Pages<M> {
    /// How memory is protected.
    pub memory: M,
    /// State of the pages, and copies of them.
    pub pool: Pool,
    /// The protected ranges with the program's rights.
    pub spans: Spans,
    /// Maximum number of mappings that opening single pages may add.
    pub budget: isize,
    /// Page states of other epochs are void.
    epoch: u32,
    /// Estimate of the mappings that opening pages has added.
    splits: isize,
}

impl<M: Memory> Pages<M> {
    /// No memory under protection.
    pub fn new(memory: M, pool: Pool, spans: Spans) -> Pages<M> {
        Pages {
            memory,
            pool,
            spans,
            budget: 0,
            epoch: 0,
            splits: 0,
        }
    }

    /// Protects all spans: the next touch of each page faults. A span that the kernel refuses to protect is returned, with its
    /// error.
    pub fn close(&mut self) -> Result<(), (Span, isize)> {
        self.void_states();
        for span in self.spans.all() {
            // SAFETY: the handler opens what the program touches.
            let result = unsafe { self.memory.protect(span.start, span.end, 0) };
            if result < 0 {
                return Err((*span, -result));
            }
        }
        Ok(())
    }

    /// Gives all spans the protection that the program gave them.
    pub fn open(&mut self) {
        self.void_states();
        // A range that fails for lack of mappings succeeds once others have merged.
        for _ in 0..ROUNDS {
            if self.open_once() {
                break;
            }
        }
    }

    fn void_states(&mut self) {
        self.epoch += 1;
        self.splits = 0;
    }

    /// Whether everything is open after an attempt.
    fn open_once(&mut self) -> bool {
        let mut done = true;
        let all = self.spans.all();
        let mut i = 0;
        while let Some(&span) = all.get(i) {
            i += 1;
            let mut end = span.end;
            while let Some(next) = all.get(i)
                && next.start == end
                && next.protection == span.protection
            {
                end = next.end;
                i += 1;
            }
            // SAFETY: the program's own protection.
            let result = unsafe { self.memory.protect(span.start, end, span.protection) };
            // An unmapped range needs no opening.
            done &= result >= 0 || !self.memory.is_mapped(span.start, end - span.start);
        }
        done
    }

    /// Whether the page at `address` is open for reading or writing.
    pub fn is_open(&mut self, address: usize, access: Access) -> bool {
        let open = self
            .spans
            .find(address)
            .map_or(0, |_| self.open_rights(address));
        match access {
            Access::Write => open & WRITE != 0,
            _ => open & READ != 0,
        }
    }

    /// Rights in force on the page at `address`.
    #[inline]
    pub fn open_rights(&mut self, address: usize) -> u8 {
        let page = self.pool.page(address);
        page.map_or(0, |page| page.rights(self.epoch))
    }

    /// Rights in force on this page.
    #[inline]
    pub fn rights(&self, page: &Page) -> u8 {
        page.rights(self.epoch)
    }

    /// The captured invocation has touched all of [start, end) that was opened ahead.
    pub fn confirm(&mut self, start: usize, end: usize) {
        for at in (start..end).step_by(PAGE) {
            if let Some(page) = self.pool.page(at)
                && page.touched == Did::Maybe
            {
                page.touched = Did::Yes;
            }
        }
    }

    /// Whether mappings run short, so that pages should not be opened one by one.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.splits >= self.budget
    }

    /// Notes the rights `now` of the pages of [start, end), a part of `span`, and updates the estimate of mappings.
    pub fn note_rights(&mut self, span: &Span, (start, end): (usize, usize), now: u8) {
        let first = (start > span.start).then(|| self.open_rights(start - PAGE));
        let mut before = first;
        let mut change = first.map_or(0, |rights| isize::from(rights != now));
        for at in (start..end).step_by(PAGE) {
            let Some(page) = self.pool.page(at) else {
                continue;
            };
            let rights = page.rights(self.epoch);
            change -= isize::from(before.is_some_and(|before| before != rights));
            before = Some(rights);
            (page.open, page.epoch) = (now, self.epoch);
        }
        if end < span.end {
            let next = self.open_rights(end);
            change += isize::from(next != now) - isize::from(before != Some(next));
        }
        self.splits += change;
    }

    /// Closes the pages of [start, end) again, as far as they are open: their next touch faults.
    pub fn close_pages(&mut self, start: usize, end: usize) {
        let mut at = start;
        while let Some((from, to)) = self.spans.part(at, end) {
            at = to;
            let Some(span) = self.spans.find(from) else {
                continue;
            };
            // SAFETY: the handler opens what the program touches.
            if unsafe { self.memory.protect(from, to, 0) } == 0 {
                self.note_rights(&span, (from, to), 0);
            }
        }
    }
}
