//! The three ways to move lines: read them in, walk over others, flush their addresses.

use crate::aligned::Aligned;
use crate::error::TimerError;
use cere_arch::lines;

/// Bytes of a cache line, at least.
pub(crate) const LINE: usize = 64;
/// Bytes of the smallest page.
pub(crate) const PAGE: usize = cere_format::PAGE as usize;

/// Memory that is only read to push other lines out.
pub(crate) struct Area {
    memory: Aligned,
    written: usize,
}

impl Area {
    /// At most `bytes`.
    pub(crate) fn new(bytes: usize) -> Result<Self, TimerError> {
        Ok(Self {
            memory: Aligned::new(bytes, PAGE, 0)?,
            written: 0,
        })
    }

    /// Gives the first `bytes` frames of their own. Pages that are only read would all be the system's one page of
    /// zeros, and a walk over them would stay in the nearest cache.
    pub(crate) fn write(&mut self, bytes: usize) {
        let to = bytes.min(self.memory.len());
        if to > self.written {
            self.memory.bytes_mut()[self.written..to].fill(1);
            self.written = to;
        }
    }

    /// Reads a word of each line of the first `bytes`, as far as they are written.
    pub(crate) fn walk(&self, bytes: usize) {
        let lines = self.written.min(bytes) / LINE;
        let first = self.memory.as_ptr();
        for line in 0..lines {
            // SAFETY: the line lies in the area, whose pages are mapped.
            unsafe { first.add(line * LINE).cast::<u64>().read_volatile() };
        }
    }
}

/// Memory that makes the prefetchers forget the operands.
///
/// A stream prefetcher keeps a table of pages with how far it has read ahead in each: 32 of them on Intel's second
/// level. Flushing addresses leaves that table: a page that was read to its end is not read ahead again, and a kernel
/// over few pages then runs at half the speed that it has on data that was not used lately. A miss in each of many
/// other pages fills the table.
pub(crate) struct Streams(Aligned);

/// Pages that are read: several times a prefetcher's table.
const STREAMS: usize = 128;

impl Streams {
    pub(crate) fn new() -> Result<Self, TimerError> {
        let mut memory = Aligned::new(STREAMS * PAGE, PAGE, 0)?;
        memory.bytes_mut().fill(1);
        Ok(Self(memory))
    }

    /// Misses once in each page, on the calling thread's processor.
    pub(crate) fn forget(&self) {
        // A line further in each page: they spread over the sets of the caches.
        let line = |page: usize| Range {
            first: self.0.as_ptr() as usize + page * PAGE + page * LINE % PAGE,
            bytes: 1,
        };
        if flushes_addresses() {
            // SAFETY: all pages are mapped; the processor was asked.
            (0..STREAMS).for_each(|page| unsafe { line(page).flush() });
        }
        // SAFETY: all pages are mapped.
        (0..STREAMS).for_each(|page| unsafe { line(page).read() });
    }
}

/// Addresses that a state is given to: `bytes` from `first`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) first: usize,
    pub(crate) bytes: usize,
}

impl Range {
    /// One address in each of its lines.
    fn lines(self) -> impl DoubleEndedIterator<Item = *const u8> {
        let start = self.first / LINE;
        let end = (self.first + self.bytes).div_ceil(LINE);
        (start..end).map(move |line| (line * LINE).max(self.first) as *const u8)
    }

    /// Reads each of its lines, from the last to the first.
    ///
    /// # Safety
    /// All of it is mapped and readable.
    pub(crate) unsafe fn read(self) {
        for line in self.lines().rev() {
            // SAFETY: the address lies in the range.
            unsafe { line.read_volatile() };
        }
    }

    /// Flushes each of its lines out of all caches of the machine.
    ///
    /// # Safety
    /// All of it is mapped, and the processor has the instruction: [`flushes_addresses`].
    pub(crate) unsafe fn flush(self) {
        for line in self.lines() {
            // SAFETY: a mapped line, and the processor has the instruction. It changes no value.
            unsafe { lines::ALWAYS.line(line as u64) };
        }
        lines::settle();
    }
}

/// Whether the processor can flush an address.
pub(crate) fn flushes_addresses() -> bool {
    lines::flush().is_some()
}

/// Writes a byte of each page of `memory`, so that the system has no page left to provide in a timed part.
pub(crate) fn touch_pages(memory: &mut Aligned) {
    for page in memory.bytes_mut().chunks_mut(PAGE) {
        // SAFETY: a byte of the slice.
        unsafe { page.as_mut_ptr().write_volatile(0) };
        // Pages need not begin where the memory does.
        if let Some(last) = page.last_mut() {
            // SAFETY: a byte of the slice.
            unsafe { std::ptr::from_mut(last).write_volatile(0) };
        }
    }
}
