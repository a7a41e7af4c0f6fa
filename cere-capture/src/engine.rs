//! The state of captures, and what a touch of protected memory does.
//!
//! Everything here may run in a signal handler: raw system calls and the pool only, no copies that the
//! compiler would leave to libc, whose data may be closed.

use crate::heap::Usage;
use crate::pool::{DEAD, GUESSED, PAGE, Page, Pool, TOUCHER_SHIFT, TOUCHERS, Touch, ZEROS};
use crate::spans::{KIND_STACK, KIND_TWICE, Span, Spans};
use crate::stacks::Resting;
use crate::tracer::Tracer;
use crate::{clock, openmp, sys, team, threads};
use cere_format::abi::RegionDescriptor;
use cere_format::answers::Clock;
use cere_format::capture::{EntryState, Image, Mapping, OpenMpLock, PageTrace};
use std::sync::atomic::{AtomicBool, Ordering};

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

/// A capture in progress.
pub struct Level {
    /// The region.
    pub region: *mut RegionDescriptor,
    /// Its place among the wanted ones.
    pub wanted: usize,
    /// Invocation, from 1.
    pub invocation: u64,
    /// The processor's state at entry.
    pub entry: EntryState,
    /// [start, end) of the thread's own stack, if the region was entered on it: nothing lives below its pointer. Empty if it
    /// was entered on another, which may lie amid data.
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
    /// The threads whose stacks are watched.
    pub resting: Vec<Resting>,
    /// The clocks at entry, and where the answers that the region gets from the kernel begin.
    pub clocks: (Vec<Clock>, usize),
    /// The page trace before entry.
    pub trace: Option<(PageTrace, Vec<u64>)>,
}

impl Level {
    /// From which address on pages of the region heap are memory that the program's allocator would have had to ask the
    /// kernel for: what the invocation allocated and kept is more than that had free. None if it is not.
    pub fn new_heap(&self) -> Option<usize> {
        let grown = crate::heap::live().saturating_sub(self.heap.live);
        (grown > self.heap.memory?.spare).then_some(self.heap.used)
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

/// The state of captures and page traces of the process.
pub struct Engine {
    /// Memory.
    pub pool: Pool,
    /// The program's memory under protection.
    pub spans: Spans,
    /// The capture in progress. There is one at most: captures do not lie in one another.
    pub level: Option<Level>,
    /// The page trace.
    pub tracer: Tracer,
    /// Of the capture, or of the tracer.
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

/// Times that opening everything is tried.
const ROUNDS: u32 = 3;

/// Whether memory is to be closed, for those that have no turn.
static AT_WORK: AtomicBool = AtomicBool::new(false);

/// Whether memory is to be closed.
pub fn at_work() -> bool {
    AT_WORK.load(Ordering::Acquire)
}

/// Pages opened together when mappings run out, smallest first.
const BLOCKS: [usize; 5] = [16, 256, 4096, 65536, usize::MAX / PAGE / 2];

impl Engine {
    /// Whether memory is to be closed.
    pub fn at_work(&self) -> bool {
        self.tracer.on || self.level.is_some()
    }

    /// Has those without a turn know whether memory is to be closed: before their calls are held, and after they were let go.
    pub fn tell(&self) {
        AT_WORK.store(self.at_work(), Ordering::Release);
    }

    /// Protects all spans: the next touch of each page faults.
    pub fn close(&mut self) -> Result<(), String> {
        self.epoch += 1;
        self.splits = 0;
        threads::closed();
        if self.level.is_some() {
            clock::close();
        }
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
        clock::open();
        self.drain();
        self.epoch += 1;
        self.splits = 0;
        // What fails for want of mappings succeeds when others have become one.
        for _ in 0..ROUNDS {
            if self.uncover_all() {
                break;
            }
        }
    }

    /// Whether everything is open.
    fn uncover_all(&self) -> bool {
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
            let result = unsafe { sys::protect(span.start, end, span.protection) };
            // What is not there any more is nobody's.
            done &= result >= 0 || !sys::is_mapped(span.start, end - span.start);
        }
        done
    }

    /// Keeps what the invocation has written as it is now: threads that wait for memory change it as soon as they go on.
    /// Everything is open, and they are held. False if there is no room.
    pub fn keep_exit(&mut self) -> bool {
        let Some(touched) = self.level.as_ref().map(|level| level.touched) else {
            return true;
        };
        // SAFETY: the capture's entries; no other slice of them is alive.
        for touch in unsafe { self.pool.log(touched) } {
            let page = self.pool.page(touch.address);
            // SAFETY: a page of the pool, or null.
            let written = unsafe { page.as_ref() }.is_some_and(|p| p.written);
            let kept = written && touch.kind & DEAD == 0;
            if !kept || self.spans.find(touch.address).is_none() {
                continue;
            }
            // SAFETY: a page of the program that is open.
            touch.exit = match unsafe { self.pool.copy(touch.address) } {
                None => return false,
                Some(0) => ZEROS,
                Some(copy) => copy,
            };
        }
        true
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

    /// Gives the page to the capture, if that has not touched it. The page is readable by now.
    fn take(&mut self, address: usize, kind: u32, page: &mut Page) -> Result<(), &'static str> {
        let Some(level) = self.level.as_mut().filter(|_| !page.touched) else {
            return Ok(());
        };
        let mut touch = Touch {
            address,
            copy: 0,
            kind: kind | self.toucher.min(TOUCHERS) << TOUCHER_SHIFT,
            exit: 0,
        };
        let dead = kind & u32::from(KIND_STACK) != 0
            && level.stack.0 <= address
            && address + PAGE <= level.entry.stack_pointer as usize;
        if dead {
            touch.kind |= DEAD;
        } else {
            // SAFETY: the page is readable.
            touch.copy = unsafe { self.pool.copy(address) }
                .ok_or("more memory than the machine has left")?;
        }
        if !self.pool.append(level.touched, touch) {
            return Err("more pages than can be noted");
        }
        level.touched += 1;
        page.touched = true;
        Ok(())
    }

    /// Lets the capture keep the pages of the thread control block, which stay open throughout.
    pub fn take_control(&mut self, control: (usize, usize)) -> Result<(), String> {
        let Some(level) = &mut self.level else {
            return Ok(());
        };
        for address in (control.0..control.1).step_by(PAGE) {
            // SAFETY: the thread's own control block.
            let copy = unsafe { self.pool.copy(address) }.ok_or("no memory is left")?;
            let touch = Touch {
                address,
                copy,
                kind: crate::spans::KIND_FOREIGN.into(),
                exit: 0,
            };
            if !self.pool.append(level.touched, touch) {
                return Err("the thread-local storage is too large".into());
            }
            level.touched += 1;
        }
        Ok(())
    }

    /// The captured thread touches `address` for the first time, with this stack pointer: what it uses of a stack of the
    /// program's own.
    pub fn note_frames(&mut self, address: usize, pointer: usize) {
        /// Of the x86-64 ABI.
        const RED_ZONE: usize = 128;
        /// A stack pointer farther below is likely another stack's.
        const NEAR: usize = 1 << 20;
        let lowest = match pointer.saturating_sub(RED_ZONE) <= address && address < pointer {
            true => address,
            false => pointer,
        };
        let lowest = (lowest & !(PAGE - 1)) as u64;
        if let Some(level) = &mut self.level
            && let Some(frames) = &mut level.entry.frames
            && lowest < *frames
            && *frames - lowest <= NEAR as u64
        {
            *frames = lowest;
        }
    }

    /// Keeps the frame that the region is called from, its argument block among it: code under other flags may load
    /// arguments that this code does not, and the frame is compared though the region may leave it alone.
    pub fn keep_frame(&mut self) {
        let Some(level) = &self.level else { return };
        let (stack, block) = (level.entry.stack_pointer, level.entry.arguments);
        let end = (block + u64::from(level.entry.arguments_size)).max(stack + 1);
        let pages = (stack as usize & !(PAGE - 1)..end as usize).step_by(PAGE);
        for page in pages {
            // What cannot be opened is refused when the region touches it.
            let _ = self.touch(page, Access::Read);
        }
    }

    /// Opens the page at `address` for `access` and lets the capture keep its content.
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
        let twice = span.kind & KIND_TWICE != 0 && self.level.is_some();
        if twice && access == Access::Write {
            return Touched::Failed("memory that is mapped at two addresses, to write it");
        }
        let new = !page.touched;
        // A page beside written ones, read for the first time, is likely to be written next: one fault for both.
        let guess = new
            && !twice
            && self.level.is_some()
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
            let kept = self.level.is_none() || page.touched;
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
        let captures = self.level.is_some();
        page.written |= captures && now & WRITE != 0;
        page.executed |= captures && now & EXECUTE != 0;
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
                // A part of it may be open by now.
                self.pool.close(start, end);
                // SAFETY: the handler opens what the program touches.
                if unsafe { sys::protect(start, end, 0) } < 0 {
                    return Touched::Failed("memory that cannot be closed again");
                }
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
                if !page.touched && at != address {
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
        if let Some(level) = self.level.as_mut().filter(|_| fresh) {
            let full = level.fresh.len() == level.fresh.capacity();
            let (start, end) = (start as u64, end as u64);
            // Memory that is mapped, dropped and mapped again stands there once.
            if level.fresh.iter().any(|f| f.0 <= start && end <= f.1) {
                return Ok(());
            }
            match level.fresh.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                Some(last) if last.0 == end => last.0 = start,
                _ if full => return Err(LACK),
                _ => level.fresh.push((start, end)),
            }
        }
        Ok(())
    }
}
