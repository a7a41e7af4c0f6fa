//! Memory of a capture: one reserved range, cut into fixed parts, backed by the kernel as it is used. Copies of pages lie in memory
//! as far as the [`WINDOW`], the others in a file, of which little is mapped at a time.

use crate::os::sys::PAGE;
use crate::os::{arena, sys};

/// Size of the stacks for hooks and handlers.
pub const STACK: usize = 1 << 20;
/// Maximum number of spans under protection.
pub const SPANS: usize = 1 << 17;
const TOP: usize = 1 << 17;
const CHUNK_PAGES: usize = 1 << 18;
const CHUNK: usize = CHUNK_PAGES * size_of::<Page>();
/// Bytes of copies that the kernel is asked for at a time.
const BLOCK: usize = 2 << 20;
/// Bytes of copies that lie in memory.
pub const WINDOW: usize = 32 << 20;
/// Blocks of the file that are mapped at a time.
const AT_HAND: usize = 8;

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
    /// Whether a file lies behind the window.
    filed: bool,
    /// The blocks of the file that may be mapped, by number.
    at_hand: [usize; AT_HAND],
    used: usize,
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
            sys::call(libc::SYS_madvise, [copies, WINDOW, huge, 0, 0, 0]);
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
            filed: false,
            at_hand: [0; AT_HAND],
            used: 0,
        })
    }

    /// Limits further copies to `bytes`, of which the [`WINDOW`] holds the first: a file is mapped for the others.
    pub fn allow(&mut self, bytes: usize) {
        self.limit = self.end.min(self.next.saturating_add(bytes));
        self.filed = self.limit > self.copies + WINDOW;
    }

    /// [start, end) of the copies: of number 1 at the start.
    pub fn room(&self) -> (usize, usize) {
        (self.copies, self.end)
    }

    /// Number of the copies.
    pub fn count(&self) -> u32 {
        ((self.next - self.copies) / PAGE) as u32
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
        if to + PAGE > self.limit || to + PAGE > self.populated && !self.populate() {
            return None;
        }
        self.keep_at_hand(to);
        // SAFETY: `to` is fresh memory of ours.
        unsafe { sys::copy_page(page, to) };
        self.next = to + PAGE;
        Some(self.count())
    }

    /// Has the kernel give the next block memory, or room in the file; false if it has none.
    fn populate(&mut self) -> bool {
        /// Linux 5.14. Without it, what the disk has no room for ends the program.
        const MADV_POPULATE_WRITE: usize = 23;
        let advice = [self.populated, BLOCK, MADV_POPULATE_WRITE, 0, 0, 0];
        self.keep_at_hand(self.populated);
        // SAFETY: fresh memory of ours.
        let result = unsafe { sys::call(libc::SYS_madvise, advice) };
        let given = !self.is_filed(self.populated) || matches!(-result as i32, 0 | libc::EINVAL);
        self.populated += if given { BLOCK } else { 0 };
        given
    }

    fn is_filed(&self, copy: usize) -> bool {
        copy >= self.copies + WINDOW
    }

    /// The copy at this address is about to be used: bounds what is mapped of the file. What is let go of stays in the file.
    #[inline]
    fn keep_at_hand(&mut self, copy: usize) {
        let block = (copy - self.copies) / BLOCK;
        if !self.is_filed(copy) || self.at_hand[..self.used].contains(&block) {
            return;
        }
        if self.used == AT_HAND {
            for block in self.at_hand {
                let advice = libc::MADV_DONTNEED as usize;
                let start = self.copies + block * BLOCK;
                // SAFETY: a part of the mapping of the file, which keeps its content.
                unsafe { sys::call(libc::SYS_madvise, [start, BLOCK, advice, 0, 0, 0]) };
            }
            self.used = 0;
        }
        self.at_hand[self.used] = block;
        self.used += 1;
    }

    /// Address of copy `number`, from 1, which is about to be used.
    fn copy_at(&mut self, number: u32) -> usize {
        let at = self.copies + (number as usize - 1) * PAGE;
        self.keep_at_hand(at);
        at
    }

    /// Content of copy `number`, from 1.
    ///
    /// # Safety
    /// The copy was made and not dropped.
    pub unsafe fn content<'a>(&mut self, number: u32) -> &'a [u8] {
        // SAFETY: the copy was made and not dropped.
        unsafe { std::slice::from_raw_parts(self.copy_at(number) as *const u8, PAGE) }
    }

    /// The copies that lie in memory, one after the other; the file has the rest.
    ///
    /// # Safety
    /// None is made or dropped while they are used.
    pub unsafe fn in_memory<'a>(&self) -> &'a [u8] {
        let size = (self.next - self.copies).min(WINDOW);
        // SAFETY: all these copies were made.
        unsafe { std::slice::from_raw_parts(self.copies as *const u8, size) }
    }

    /// Gives a copy `to` of the page at `address` what the copy `from` holds in the range [start, end).
    pub fn take_over(&mut self, from: u32, to: u32, address: usize, range: (usize, usize)) {
        let start = range.0.max(address) - address;
        let end = range.1.min(address + PAGE).saturating_sub(address);
        let (from, to) = (self.copy_at(from), self.copy_at(to));
        for at in start..end {
            // SAFETY: both copies were made, and are of a page each.
            unsafe { *((to + at) as *mut u8) = *((from + at) as *const u8) };
        }
    }

    /// Drops all copies, and takes the file away.
    pub fn reset(&mut self) {
        self.next = self.copies;
        self.populated = self.populated.min(self.copies + WINDOW);
        self.limit = self.copies;
        if !std::mem::take(&mut self.filed) {
            return;
        }
        self.used = 0;
        let start = self.copies + WINDOW;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let arguments = [start, self.end - start, 0, flags as usize, usize::MAX, 0];
        // SAFETY: copies of no use any more.
        unsafe { sys::call(libc::SYS_mmap, arguments) };
    }
}
