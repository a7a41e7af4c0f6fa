//! The state of captures, and what a touch of protected memory does.
//!
//! Everything here may run in a signal handler: raw system calls and the pool only, no copies that the
//! compiler would leave to libc, whose data may be closed.

use crate::heap::Usage;
use crate::pool::{DEAD, GUESSED, LEVELS, PAGE, Page, Pool, TOUCHER_SHIFT, TOUCHERS, Touch};
use crate::spans::{KIND_STACK, Span, Spans};
use crate::tracer::Tracer;
use crate::{openmp, sys, team, threads};
use cere_format::abi::RegionDescriptor;
use cere_format::capture::{EntryState, Image, Mapping, OpenMpLock, PageTrace};

const READ: u8 = libc::PROT_READ as u8;
const WRITE: u8 = libc::PROT_WRITE as u8;
const EXECUTE: u8 = libc::PROT_EXEC as u8;
/// System calls that are counted, by number.
pub const CALLS: usize = 512;

/// What an instruction wants from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read it.
    Read,
    /// To write it.
    Write,
    /// To execute it.
    Execute,
}

/// What came of a touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// The page is open now.
    Opened,
    /// The program has no right to it.
    NotOurs,
    /// The page cannot be opened: what it lacks.
    Failed(&'static str),
}

/// One capture in progress.
pub struct Level {
    /// The region.
    pub region: *mut RegionDescriptor,
    /// Its place among the wanted ones.
    pub wanted: usize,
    /// Invocation, from 1.
    pub invocation: u64,
    /// The processor's state at entry.
    pub entry: EntryState,
    /// [start, end) of the mapping that holds the stack pointer at entry.
    pub stack: (usize, usize),
    /// Thread control block and static thread-local storage at entry, whole pages.
    pub control: (usize, usize),
    /// Entries in the pool's log.
    pub touched: usize,
    /// Time stamp at entry.
    pub started: u64,
    /// Faults taken.
    pub faults: u64,
    /// System calls made, by number.
    pub calls: [u32; CALLS],
    /// Ranges mapped since entry. Capacity is reserved at entry and never exceeded.
    pub fresh: Vec<(u64, u64)>,
    /// Images at entry.
    pub images: Vec<Image>,
    /// Mappings at entry.
    pub mappings: Vec<Mapping>,
    /// What of them was not in memory then: [start, end), rising.
    pub absent: Vec<(u64, u64)>,
    /// Allocators at entry.
    pub heap: Usage,
    /// Threads that the next team has; none without an OpenMP runtime.
    pub threads: Option<u32>,
    /// Locks of the OpenMP runtime.
    pub locks: Vec<OpenMpLock>,
    /// Thread-local blocks of the region's image in the runtime's threads at entry, by their numbers.
    pub blocks: Vec<(u32, Vec<u8>)>,
    /// The page trace before entry.
    pub trace: Option<(PageTrace, Vec<u64>)>,
}

impl Level {
    /// From which address on pages of the region heap are memory that the program's allocator would have had to ask the
    /// kernel for: what the invocation allocated and kept is more than that had free. None if it is not.
    pub fn new_heap(&self) -> Option<usize> {
        let grown = crate::heap::live().saturating_sub(self.heap.live);
        (grown > self.heap.spare?).then_some(self.heap.used)
    }
}

/// Where the thread whose memory is closed runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// [start, end) of the mapping that holds its stack pointer.
    pub stack: (usize, usize),
    /// Whether the kernel lets that mapping grow.
    pub grows: bool,
    /// Its control block and static thread-local storage, whole pages.
    pub control: (usize, usize),
}

/// The state of all captures of the process.
pub struct Engine {
    /// Memory.
    pub pool: Pool,
    /// The program's memory under protection.
    pub spans: Spans,
    /// Captures in progress, outermost first. Capacity is LEVELS.
    pub levels: Vec<Level>,
    /// The page trace.
    pub tracer: Tracer,
    /// Of the outermost level, or of the tracer.
    pub place: Place,
    /// [start, end) of what is never protected: the library's own memory and image.
    pub own: Vec<(usize, usize)>,
    /// Stacks of the other threads, never protected either.
    pub stacks: Vec<(usize, usize)>,
    /// Page states of other epochs are void.
    pub epoch: u32,
    /// Estimate of the mappings that opening pages has added.
    pub splits: isize,
    /// The most of them before neighbouring pages are opened together.
    pub budget: isize,
    /// Number of the thread whose touch it is: 0 for the one that entered the region.
    pub toucher: u32,
}

/// Pages opened together when mappings run out, smallest first.
const BLOCKS: [usize; 5] = [16, 256, 4096, 65536, usize::MAX / PAGE / 2];

impl Engine {
    /// Bits of all levels.
    pub fn mask(&self) -> u8 {
        ((1u32 << self.levels.len()) - 1) as u8
    }

    /// Whether memory is to be closed.
    pub fn at_work(&self) -> bool {
        self.tracer.on || !self.levels.is_empty()
    }

    /// Protects all spans: the next touch of each page faults.
    pub fn close(&mut self) -> Result<(), String> {
        self.epoch += 1;
        self.splits = 0;
        threads::closed();
        for span in self.spans.all() {
            // SAFETY: the handler opens what the program touches.
            let result = unsafe { sys::protect(span.start, span.end, 0) };
            if result < 0 {
                return Err(format!(
                    "{:#x}-{:#x} cannot be protected (error {})",
                    span.start, span.end, -result
                ));
            }
        }
        Ok(())
    }

    /// Gives all spans the protection that the program gave them; other threads may go on.
    pub fn open(&mut self) {
        self.uncover();
        threads::opened();
    }

    /// Gives all spans the protection that the program gave them, for a moment: the system calls of other threads stay held.
    pub fn uncover(&mut self) {
        self.drain();
        self.epoch += 1;
        self.splits = 0;
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
            unsafe { sys::protect(span.start, end, span.protection) };
        }
    }

    /// Whether the page at `address` is open for reading or writing.
    pub fn is_open(&mut self, address: usize, access: Access) -> bool {
        let open = self.spans.find(address).map_or(0, |_| self.state(address));
        match access {
            Access::Write => open & WRITE != 0,
            _ => open & READ != 0,
        }
    }

    fn state(&mut self, address: usize) -> u8 {
        let page = self.pool.page(address);
        // SAFETY: a page of the pool, or null.
        match unsafe { page.as_ref() } {
            Some(page) if page.epoch == self.epoch => page.open,
            _ => 0,
        }
    }

    /// Notes that `page` at `address` of `span` is open as `now`; estimates mappings.
    pub fn note(&mut self, span: &Span, address: usize, page: &mut Page, now: u8) {
        let before = if page.epoch == self.epoch {
            page.open
        } else {
            0
        };
        page.open = now;
        page.epoch = self.epoch;
        for (inside, at) in [
            (address > span.start, address.wrapping_sub(PAGE)),
            (address + PAGE < span.end, address + PAGE),
        ] {
            if inside {
                let beside = self.state(at);
                self.splits += isize::from(beside != now) - isize::from(beside != before);
            }
        }
    }

    /// Gives the page to every level that had not touched it. The page is readable by now.
    fn take(&mut self, address: usize, kind: u32, page: &mut Page) -> Result<(), &'static str> {
        let missing = self.mask() & !page.touched;
        if missing == 0 {
            return Ok(());
        }
        let dead = |level: &Level| {
            kind & u32::from(KIND_STACK) != 0
                && level.stack.0 <= address
                && address + PAGE <= level.entry.stack_pointer as usize
        };
        let mut copy = None;
        for i in 0..self.levels.len() {
            if missing & 1 << i == 0 {
                continue;
            }
            let mut touch = Touch {
                address,
                copy: 0,
                kind: kind | self.toucher.min(TOUCHERS) << TOUCHER_SHIFT,
            };
            if dead(&self.levels[i]) {
                touch.kind |= DEAD;
            } else {
                touch.copy = match copy {
                    Some(copy) => copy,
                    // SAFETY: the page is readable.
                    None => unsafe { self.pool.copy(address) }
                        .ok_or("more memory than the machine has left")?,
                };
                copy = Some(touch.copy);
            }
            let length = self.levels[i].touched;
            if !self.pool.append(i, length, touch) {
                return Err("more pages than can be noted");
            }
            self.levels[i].touched = length + 1;
        }
        page.touched |= missing;
        Ok(())
    }

    /// Lets the innermost level keep the pages of the thread control block, which stay open throughout.
    pub fn take_control(&mut self, control: (usize, usize)) -> Result<(), String> {
        let index = self.levels.len() - 1;
        for address in (control.0..control.1).step_by(PAGE) {
            // SAFETY: the thread's own control block.
            let copy = unsafe { self.pool.copy(address) }.ok_or("no memory is left")?;
            let touch = Touch {
                address,
                copy,
                kind: crate::spans::KIND_FOREIGN.into(),
            };
            let length = self.levels[index].touched;
            if !self.pool.append(index, length, touch) {
                return Err("the thread-local storage is too large".into());
            }
            self.levels[index].touched = length + 1;
        }
        Ok(())
    }

    /// Opens the page at `address` for `access` and lets each level keep its content.
    pub fn touch(&mut self, address: usize, access: Access) -> Touched {
        let address = address & !(PAGE - 1);
        let Some(span) = self.spans.find(address).or_else(|| self.grow(address)) else {
            return Touched::NotOurs;
        };
        let need = match access {
            Access::Read => READ,
            Access::Write => WRITE,
            Access::Execute => EXECUTE,
        };
        // x86 reads whatever it may write or execute.
        if span.protection & need == 0 && (need != READ || span.protection == 0) {
            return Touched::NotOurs;
        }
        // SAFETY: a page of the pool, or null.
        let Some(page) = (unsafe { self.pool.page(address).as_mut() }) else {
            return Touched::Failed("more address space than can be noted");
        };
        let mut now = need | (span.protection & READ);
        let open = match page.epoch == self.epoch {
            true => page.open,
            false => 0,
        };
        now |= open;
        let new = page.touched & self.mask() == 0;
        // A page beside written ones, read for the first time, is likely to be written next: one fault for both.
        let guess = new
            && !self.levels.is_empty()
            && access == Access::Read
            && span.protection & WRITE != 0
            && (self.state(address.wrapping_sub(PAGE)) | self.state(address + PAGE)) & WRITE != 0;
        let mut kind = u32::from(span.kind);
        if guess {
            now |= WRITE;
            kind |= GUESSED;
        }
        let shared = self.shared();
        if shared && open & need == need {
            // Another thread was first.
            return Touched::Opened;
        }
        if self.splits < self.budget {
            let kept = page.touched & self.mask() == self.mask();
            let mut result = 0;
            if shared && !kept && now & WRITE != 0 {
                // SAFETY: within the program's rights. Nobody writes until the copy is made.
                result = unsafe { sys::protect(address, address + PAGE, now & !WRITE | READ) };
                if result == 0
                    && let Err(lack) = self.take(address, kind, page)
                {
                    return Touched::Failed(lack);
                }
            }
            if result == 0 {
                // SAFETY: within the program's rights.
                result = unsafe { sys::protect(address, address + PAGE, now) };
            }
            if result == 0 {
                if now & WRITE != 0 && !kept {
                    // SAFETY: writable by now.
                    unsafe { sys::populate(address) };
                }
                if let Err(lack) = self.took(&span, kind, address, page, now) {
                    return Touched::Failed(lack);
                }
                self.traced(address, page, open == 0);
                return Touched::Opened;
            }
            if result != -(libc::ENOMEM as isize) {
                return Touched::Failed("a page that cannot be opened");
            }
        }
        self.block(span, address, access)
    }

    /// Whether other threads run in a parallel region while memory is closed.
    pub fn shared(&self) -> bool {
        team::exists() && openmp::in_parallel() && self.at_work()
    }

    fn took(
        &mut self,
        span: &Span,
        kind: u32,
        address: usize,
        page: &mut Page,
        now: u8,
    ) -> Result<(), &'static str> {
        self.take(address, kind, page)?;
        if now & WRITE != 0 {
            page.written |= self.mask();
        }
        if now & EXECUTE != 0 {
            page.executed |= self.mask();
        }
        self.note(span, address, page, now);
        Ok(())
    }

    /// Mappings run out: opens a whole block around `address` with all the program's rights.
    fn block(&mut self, span: Span, address: usize, access: Access) -> Touched {
        let mut now = span.protection;
        if access != Access::Execute && now & WRITE != 0 {
            now &= !EXECUTE;
        }
        for pages in BLOCKS {
            let size = pages * PAGE;
            let start = (address / size * size).max(span.start);
            let end = start.saturating_add(size).min(span.end);
            // Where other threads run nobody writes until the copies are made.
            let first = if self.shared() {
                now & !WRITE | READ
            } else {
                now
            };
            // SAFETY: within the program's rights.
            let result = unsafe { sys::protect(start, end, first) };
            if result == -(libc::ENOMEM as isize) {
                continue;
            }
            if result < 0 {
                return Touched::Failed("memory that cannot be opened");
            }
            // Pages of a mapping beyond the end of its file cannot be read.
            const MADV_POPULATE_READ: usize = 22;
            // SAFETY: changes nothing that the program could see.
            let read = unsafe {
                let advice = [start, end - start, MADV_POPULATE_READ, 0, 0, 0];
                sys::call(libc::SYS_madvise, advice)
            };
            if read == -(libc::EFAULT as isize) {
                return Touched::Failed("memory that cannot be read");
            }
            for at in (start..end).step_by(PAGE) {
                // SAFETY: a page of the pool, or null.
                let Some(page) = (unsafe { self.pool.page(at).as_mut() }) else {
                    return Touched::Failed("more address space than can be noted");
                };
                let mut kind = u32::from(span.kind);
                if page.touched & self.mask() == 0 && at != address {
                    kind |= GUESSED;
                }
                if let Err(lack) = self.took(&span, kind, at, page, now) {
                    return Touched::Failed(lack);
                }
            }
            // SAFETY: within the program's rights.
            if first != now && unsafe { sys::protect(start, end, now) } < 0 {
                return Touched::Failed("memory that cannot be opened");
            }
            return Touched::Opened;
        }
        Touched::Failed("more mappings than vm.max_map_count allows")
    }

    /// Finds out whether the kernel has let the stack grow down to `address`.
    fn grow(&mut self, address: usize) -> Option<Span> {
        let above = self.spans.above(address)?;
        if above.kind & KIND_STACK == 0
            || above.end != self.place.stack.1
            || above.start - address > 1 << 30
            || self.place.control.0 == address
            || !self.place.grows
        {
            return None;
        }
        if !sys::is_mapped(address, above.start - address) {
            return None;
        }
        // SAFETY: fails where nothing is mapped, and what is mapped right below the stack is stack.
        if unsafe { sys::protect(address, above.start, 0) } < 0 {
            return None;
        }
        let start = address;
        let grown = Span {
            start,
            end: above.end,
            ..above
        };
        self.spans.insert(grown).then_some(grown)
    }

    /// Opens [start, start + length) for a system call; what the program has no right to is left to the kernel.
    pub fn reach(
        &mut self,
        start: usize,
        length: usize,
        access: Access,
    ) -> Result<(), &'static str> {
        if start == 0 || length == 0 {
            return Ok(());
        }
        let end = start.saturating_add(length);
        let mut at = start & !(PAGE - 1);
        while let Some((start, stop)) = self.spans.part(at, end) {
            at = start;
            while at < stop {
                let open = self.state(at);
                let enough = match access {
                    Access::Write => open & WRITE != 0,
                    _ => open != 0,
                };
                if !enough && let Touched::Failed(lack) = self.touch(at, access) {
                    return Err(lack);
                }
                at += PAGE;
            }
        }
        Ok(())
    }

    /// The program mapped, unmapped or protected [start, end): `protection` is what it may do there now, none
    /// if nothing. Fresh memory is noted as such.
    pub fn remap(
        &mut self,
        start: usize,
        end: usize,
        protection: Option<(u8, u8)>,
        fresh: bool,
    ) -> Result<(), &'static str> {
        const LACK: &str = "more separate mappings than can be noted";
        self.pool.close(start, end);
        let done = match protection {
            Some((protection, kind)) if protection != 0 => {
                let span = Span {
                    start,
                    end,
                    protection,
                    kind,
                };
                // In this order: what is closed is known, and opened whatever happens.
                let known = self.spans.insert(span);
                // SAFETY: the handler opens what the program touches.
                if known && start < end && unsafe { sys::protect(start, end, 0) } < 0 {
                    return Err("memory that cannot be protected");
                }
                known
            }
            _ => self.spans.carve(start, end),
        };
        if !done {
            return Err(LACK);
        }
        if fresh {
            for level in &mut self.levels {
                let full = level.fresh.len() == level.fresh.capacity();
                let (start, end) = (start as u64, end as u64);
                // Memory that is mapped, dropped and mapped again stands there once.
                if level.fresh.iter().any(|f| f.0 <= start && end <= f.1) {
                    continue;
                }
                match level.fresh.last_mut() {
                    Some(last) if last.1 == start => last.1 = end,
                    Some(last) if last.0 == end => last.0 = start,
                    _ if full => return Err(LACK),
                    _ => level.fresh.push((start, end)),
                }
            }
        }
        Ok(())
    }
}

const _: () = assert!(LEVELS == 8);
