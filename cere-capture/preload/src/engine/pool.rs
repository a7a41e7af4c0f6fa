//! Memory of a capture: one reserved range, cut into fixed parts, backed by the kernel as it is used.

use crate::os::sys::PAGE;
use crate::os::{arena, sys};

/// Size of the stacks for hooks and handlers.
pub const STACK: usize = 1 << 20;
/// Maximum number of spans under protection.
pub const SPANS: usize = 1 << 17;
const TOP: usize = 1 << 17;
const CHUNK_PAGES: usize = 1 << 18;
const CHUNK: usize = CHUNK_PAGES * size_of::<Page>();
const POPULATE: usize = 2 << 20;

/// Whether a captured invocation did something with a page.
#[repr(u8)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Did {
    /// It did not.
    #[default]
    No,
    /// The page was opened before the program did it: it may have done so.
    Maybe,
    /// It did.
    Yes,
}

/// State of a page. The first three are 0 unless a capture is in progress.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Page {
    /// Whether the captured invocation touched it. The capture has all pages that it may have touched.
    pub touched: Did,
    /// Whether the captured invocation wrote it.
    pub written: Did,
    /// Whether the captured invocation executed it.
    pub executed: bool,
    /// Rights in force if `epoch` is the current one; otherwise it is closed.
    pub open: u8,
    /// Epoch in which `open` was set.
    pub epoch: u32,
    /// Sequence number of its last removal from the FIFO of the page trace; 0 for never.
    pub last: u64,
}

impl Page {
    /// Rights in force in this epoch.
    #[inline]
    pub fn rights(&self, epoch: u32) -> u8 {
        match self.epoch == epoch {
            true => self.open,
            false => 0,
        }
    }
}

/// A page that the captured invocation touched.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Touch {
    /// Its address.
    pub address: usize,
    /// Number of the copy of its content at entry, from 1; 0 if that is all zero or not needed.
    pub copy: u32,
    /// `KIND_` flags of its span, [`DEAD`], and at [`TOUCHER_SHIFT`] the number of the first-touching thread.
    pub kind: u32,
    /// Number of the copy of its content at exit, from 1, or [`ZEROS`]; 0 if it was not kept.
    pub exit: u32,
}

/// [`Touch::exit`] of a page of zeros.
pub const ZEROS: u32 = u32::MAX;

/// The whole page lies below the stack pointer at entry.
pub const DEAD: u32 = 1 << 31;

/// Bit position of the thread's number in [`Touch::kind`].
pub const TOUCHER_SHIFT: u32 = 8;
/// Maximum thread number; higher ones are counted as it.
pub const TOUCHERS: u32 = (1 << 16) - 1;

/// The parts of the range.
#[derive(Debug, Clone, Copy)]
pub struct Pool {
    base: usize,
    end: usize,
    log: usize,
    log_size: usize,
    next_chunk: usize,
    copies: usize,
    next: usize,
    populated: usize,
    limit: usize,
}

impl Pool {
    /// Reserves a pool; see [`Pool::allow`]. None if the system refuses.
    pub fn reserve() -> Option<Pool> {
        let wanted = arena::WANTED + 4 * arena::SIZE;
        let (base, size) = [256usize << 30, 32 << 30, 4 << 30]
            .into_iter()
            .find_map(|size| Some((arena::reserve(wanted, size)?, size)))?;
        let spans = base + 2 * STACK + TOP * size_of::<usize>();
        let log = (spans + SPANS * 32).next_multiple_of(CHUNK);
        let log_size = size / 64;
        let chunks = log + log_size;
        let copies = chunks + size / 16;
        // SAFETY: advice on our own fresh range.
        unsafe {
            let huge = libc::MADV_HUGEPAGE as usize;
            sys::call(
                libc::SYS_madvise,
                [copies, base + size - copies, huge, 0, 0, 0],
            );
        }
        Some(Pool {
            base,
            end: base + size,
            log,
            log_size,
            next_chunk: chunks,
            copies,
            next: copies,
            populated: copies,
            limit: copies,
        })
    }

    /// Limits further copies to `memory` bytes.
    pub fn allow(&mut self, memory: usize) {
        self.limit = self.end.min(self.next.saturating_add(memory));
    }

    /// [start, end) of the whole.
    pub fn range(&self) -> (usize, usize) {
        (self.base, self.end)
    }
    /// Top of the stack for hooks.
    pub fn hook_stack(&self) -> usize {
        self.base + STACK
    }
    /// [start, end) of the stack for signal handlers.
    pub fn signal_stack(&self) -> (usize, usize) {
        (self.base + STACK, self.base + 2 * STACK)
    }
    /// Room for [`SPANS`] spans of 32 bytes.
    pub fn spans(&self) -> usize {
        self.base + 2 * STACK + TOP * size_of::<usize>()
    }

    /// State of the page at `address`; none if there is no room for more states.
    #[inline]
    pub fn page(&mut self, address: usize) -> Option<&mut Page> {
        let number = (address & 0x7fff_ffff_ffff) / PAGE;
        let top = (self.base + 2 * STACK) as *mut usize;
        // SAFETY: within the top table and the chunks, which are ours and zero at first.
        unsafe {
            let slot = top.add(number / CHUNK_PAGES);
            if *slot == 0 {
                if self.next_chunk + CHUNK > self.copies {
                    return None;
                }
                *slot = self.next_chunk;
                self.next_chunk += CHUNK;
            }
            Some(&mut *(*slot as *mut Page).add(number % CHUNK_PAGES))
        }
    }

    /// Marks the pages of [start, end) as closed.
    pub fn close(&mut self, start: usize, end: usize) {
        let top = (self.base + 2 * STACK) as *const usize;
        let mut at = start;
        while at < end {
            let number = (at & 0x7fff_ffff_ffff) / PAGE;
            // SAFETY: within the top table.
            if unsafe { *top.add(number / CHUNK_PAGES) } == 0 {
                at = (number / CHUNK_PAGES + 1) * CHUNK_PAGES * PAGE;
                continue;
            }
            if let Some(page) = self.page(at) {
                page.open = 0;
            }
            at += PAGE;
        }
    }

    /// Appends to the log, which has `length` entries; false if it is full.
    #[inline]
    pub fn append(&mut self, length: usize, touch: Touch) -> bool {
        if (length + 1) * size_of::<Touch>() > self.log_size {
            return false;
        }
        // SAFETY: within the log.
        unsafe { *(self.log as *mut Touch).add(length) = touch };
        true
    }

    /// The log.
    ///
    /// # Safety
    /// `length` entries were appended, and no other slice of the log is alive.
    pub unsafe fn log<'a>(&self, length: usize) -> &'a mut [Touch] {
        // SAFETY: so many entries were appended, and no other slice of the log is alive.
        unsafe { std::slice::from_raw_parts_mut(self.log as *mut Touch, length) }
    }

    /// Copies a page; the copy's number from 1, 0 for a page of zeros, None if there is no room.
    ///
    /// # Safety
    /// `page` is a readable page.
    #[inline]
    pub unsafe fn copy(&mut self, page: usize) -> Option<u32> {
        // SAFETY: a readable page, as the caller says.
        if unsafe { sys::zero_page(page) } {
            return Some(0);
        }
        let to = self.next;
        if to + PAGE > self.limit {
            return None;
        }
        // SAFETY: `to` is fresh memory of ours.
        unsafe {
            if to + PAGE > self.populated {
                const MADV_POPULATE_WRITE: usize = 23;
                let advice = [self.populated, POPULATE, MADV_POPULATE_WRITE, 0, 0, 0];
                sys::call(libc::SYS_madvise, advice);
                self.populated += POPULATE;
            }
            sys::copy_page(page, to);
        }
        self.next = to + PAGE;
        Some(((to - self.copies) / PAGE + 1) as u32)
    }

    /// Content of copy `number`, from 1.
    ///
    /// # Safety
    /// The copy was made and not dropped.
    pub unsafe fn content<'a>(&self, number: u32) -> &'a [u8] {
        let at = self.copies + (number as usize - 1) * PAGE;
        // SAFETY: the copy was made and not dropped.
        unsafe { std::slice::from_raw_parts(at as *const u8, PAGE) }
    }

    /// Gives a copy `to` of the page at `address` what the copy `from` holds in the range [start, end).
    pub fn take_over(&self, from: u32, to: u32, address: usize, range: (usize, usize)) {
        let start = range.0.max(address) - address;
        let end = range.1.min(address + PAGE).saturating_sub(address);
        for at in start..end {
            let place = |copy: u32| self.copies + (copy as usize - 1) * PAGE + at;
            // SAFETY: both copies were made, and are of a page each.
            unsafe { *(place(to) as *mut u8) = *(place(from) as *const u8) };
        }
    }

    /// Drops all copies and returns most of their memory.
    pub fn reset(&mut self) {
        const KEPT: usize = 64 << 20;
        let kept = self.copies + KEPT;
        if self.populated > kept {
            // SAFETY: our own copies, all of no use any more.
            unsafe {
                let dropped = libc::MADV_DONTNEED as usize;
                sys::call(
                    libc::SYS_madvise,
                    [kept, self.populated - kept, dropped, 0, 0, 0],
                );
            }
            self.populated = kept;
        }
        self.next = self.copies;
    }
}
