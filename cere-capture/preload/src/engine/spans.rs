//! The program's memory under protection: ranges that do not overlap, by rising address.

use super::pool::SPANS;

/// Of a library that is not instrumented, or of the thread control block.
pub const KIND_FOREIGN: u8 = 1;
/// Of the captured thread's stack.
pub const KIND_STACK: u8 = 2;

/// Of a file, or shared: what is dropped there comes back.
pub const KIND_FILE: u8 = 4;

/// Shared, and mapped at another address as well.
pub const KIND_TWICE: u8 = 8;

/// The kernel lets it grow down, as it does a stack (MAP_GROWSDOWN).
pub const KIND_GROWS: u8 = 16;

/// Shared: by other processes perhaps.
pub const KIND_SHARED: u8 = 32;

/// Shared, and another process or a device writes it.
pub const KIND_OUTSIDE: u8 = 64;

/// A range of memory with one protection.
#[repr(C, align(32))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// First address.
    pub start: usize,
    /// Address after the last.
    pub end: usize,
    /// `PROT_` flags that the program gave it.
    pub protection: u8,
    /// `KIND_` flags.
    pub kind: u8,
}

/// Sorted spans in memory of the pool.
#[derive(Debug)]
pub struct Spans {
    first: *mut Span,
    length: usize,
    last: usize,
}

impl Spans {
    /// No spans, with room for [`SPANS`] at `room`.
    ///
    /// # Safety
    /// `room` is ours, aligned, writable.
    pub const unsafe fn new(room: usize) -> Spans {
        Spans {
            first: room as *mut Span,
            length: 0,
            last: 0,
        }
    }

    /// All of them.
    pub fn all(&self) -> &[Span] {
        // SAFETY: `length` spans lie in the room.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    fn position(&self, address: usize) -> usize {
        self.all().partition_point(|s| s.end <= address)
    }

    /// The span that holds `address`.
    #[inline]
    pub fn find(&mut self, address: usize) -> Option<Span> {
        let all = self.all();
        if let Some(span) = all.get(self.last)
            && span.start <= address
            && address < span.end
        {
            return Some(*span);
        }
        let position = self.position(address);
        let span = *self.all().get(position)?;
        if span.start > address {
            return None;
        }
        self.last = position;
        Some(span)
    }

    /// The first span above `address`.
    pub fn above(&self, address: usize) -> Option<Span> {
        self.all().get(self.position(address)).copied()
    }

    /// The first part of [at, end) that lies in a span, as [start, stop); none if there is none.
    pub fn part(&mut self, at: usize, end: usize) -> Option<(usize, usize)> {
        if at >= end {
            return None;
        }
        let span = self.find(at).or_else(|| self.above(at))?;
        let start = span.start.max(at);
        (start < end).then_some((start, span.end.min(end)))
    }

    /// Whether a part of [start, end) has one of these kinds.
    pub fn any(&self, start: usize, end: usize, kind: u8) -> bool {
        let from = &self.all()[self.position(start)..];
        let inside = from.iter().take_while(|s| s.start < end);
        inside.into_iter().any(|s| s.kind & kind != 0)
    }

    fn put(&mut self, position: usize, span: Span) -> bool {
        if self.length == SPANS {
            return false;
        }
        // SAFETY: the room holds SPANS spans. Volatile, lest the compiler calls libc's memmove, whose data may be
        // closed when a handler gets here.
        unsafe {
            for i in (position..self.length).rev() {
                self.first
                    .add(i + 1)
                    .write_volatile(self.first.add(i).read_volatile());
            }
            *self.first.add(position) = span;
        }
        self.length += 1;
        true
    }

    /// Takes [start, end) out. False if there is no room for the pieces.
    pub fn carve(&mut self, start: usize, end: usize) -> bool {
        let mut position = self.position(start);
        while let Some(&span) = self.all().get(position) {
            if span.start >= end {
                break;
            }
            // SAFETY: `position` is below `length` throughout.
            unsafe {
                let at = self.first.add(position);
                if span.start < start && span.end > end {
                    if self.length == SPANS {
                        return false;
                    }
                    (*at).end = start;
                    return self.put(position + 1, Span { start: end, ..span });
                } else if span.start < start {
                    (*at).end = start;
                    position += 1;
                } else if span.end > end {
                    (*at).start = end;
                    break;
                } else {
                    for i in position + 1..self.length {
                        self.first
                            .add(i - 1)
                            .write_volatile(self.first.add(i).read_volatile());
                    }
                    self.length -= 1;
                }
            }
        }
        true
    }

    /// Adds a span in place of whatever was there. False if there is no room.
    pub fn insert(&mut self, span: Span) -> bool {
        span.start >= span.end
            || (self.carve(span.start, span.end) && self.put(self.position(span.start), span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(spans: &Spans) -> Vec<(usize, usize, u8)> {
        spans
            .all()
            .iter()
            .map(|s| (s.start, s.end, s.protection))
            .collect()
    }

    #[test]
    fn carve_and_insert_keep_order() {
        let mut room = vec![Span::default(); 64];
        // SAFETY: far fewer than 64 spans are put in.
        let mut spans = unsafe { Spans::new(room.as_mut_ptr() as usize) };
        let span = |start, end, protection| Span {
            start,
            end,
            protection,
            kind: 0,
        };
        assert!(spans.insert(span(10, 20, 1)));
        assert!(spans.insert(span(40, 60, 1)));
        assert!(spans.insert(span(20, 40, 3)));
        assert_eq!(list(&spans), [(10, 20, 1), (20, 40, 3), (40, 60, 1)]);
        assert!(spans.insert(span(15, 45, 0)));
        assert_eq!(list(&spans), [(10, 15, 1), (15, 45, 0), (45, 60, 1)]);
        assert!(spans.carve(20, 30));
        assert_eq!(
            list(&spans),
            [(10, 15, 1), (15, 20, 0), (30, 45, 0), (45, 60, 1)]
        );
        assert_eq!(spans.find(30).map(|s| s.end), Some(45));
        assert!(spans.find(25).is_none() && spans.find(60).is_none());
        assert_eq!(spans.above(21).map(|s| s.start), Some(30));
        assert_eq!(spans.part(16, 50), Some((16, 20)));
        assert_eq!(spans.part(20, 50), Some((30, 45)));
        assert!(spans.part(20, 30).is_none() && spans.part(60, 70).is_none());
        assert!(spans.carve(0, 100));
        assert!(list(&spans).is_empty());
    }
}
