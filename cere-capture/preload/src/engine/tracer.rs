//! The page trace: the last opened pages stay open in a FIFO, in runs that were opened together. A run that leaves it is closed
//! and its pages are logged.
//!
//! Except for the begin of windows and snapshots, everything may run in a signal handler: raw system calls and reserved memory
//! only.

use super::level::Captured;
use super::memory::{Memory, WRITE};
use super::pace::Pace;
use super::pages::Pages;
use crate::os::sys::PAGE;
use crate::os::{arena, names};
use cere_format::capture::{
    TRACE_AGE_SHIFT, TRACE_AGE_UNIT, TRACE_IN_USE, TRACE_PAGE, TRACE_THREAD_SHIFT, TRACE_THREADS,
    TRACE_WRITTEN, TracePlan,
};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// [`Page::last`] of a page that is in the FIFO.
const IN_FIFO: u64 = u64::MAX;
/// Capacity of the FIFO in runs; half of it is for pages that single system calls reach.
const RING: usize = 1 << 20;
/// Pages in the FIFO for each of its slots: streams hold several.
const PAGES_PER_SLOT: usize = 8;
/// Requested slots from which on streams are opened ahead, and pages closed after [`TRACE_IN_USE`]: whether they are still in use
/// shows when they are touched again.
const STREAMS_FROM: u32 = 32;
/// Pages for each slot that come back to a FIFO which they left for lack of room until it is made longer.
const BACK: u64 = 4;
/// Minimum number of log entries; the actual one depends on the requested pages.
const LOG: usize = 1 << 16;
/// Interruptions after which a window is given up: each costs some milliseconds.
const HALTS: u32 = 100;

/// Why a window has a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// In words.
    Because(&'static str),
    /// A system call, by number, and what is wrong with it.
    Call(usize, &'static str),
    /// A signal arrived for a handler of the program.
    Signal(i32),
    /// The program may not access this address.
    Crash(usize),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::Because(why) => f.write_str(why),
            Cut::Call(number, why) => {
                write!(f, "the program calls {}: {why}", names::name_call(*number))
            }
            Cut::Signal(signal) => {
                write!(f, "signal {signal} arrives for a handler of the program")
            }
            Cut::Crash(address) => write!(f, "the program may not access {address:#x}"),
        }
    }
}

/// A window in progress: from its start to the entry of its wanted invocation.
pub struct Window {
    /// Its place among the windows of the plan.
    pub plan: usize,
    /// The event that it began with.
    pub began: String,
    /// Sequence number at its beginning.
    pub first: u64,
    /// Faults taken before it.
    pub faults: u64,
    /// Different pages touched since.
    pub touched: u64,
    /// The first gap.
    pub cut: Option<Cut>,
    /// The captured invocation that it began inside, or beside whose blocks it was given up.
    pub inside: Option<Captured>,
    /// Captures begun before it.
    pub captures: u64,
    /// Gaps.
    halts: u32,
    /// Nothing more is traced for it.
    ended: bool,
}

/// Pages that were opened together.
#[derive(Clone, Copy)]
pub struct Run {
    /// The page that was touched.
    pub page: usize,
    /// How many pages beyond it were opened ahead.
    pub ahead: u16,
    /// Whether these lie below it.
    pub down: bool,
    /// Number of the thread that touched it.
    pub thread: u32,
    /// When it did, by [`Pace`].
    pub time: u64,
}

impl Run {
    /// Its pages, in the order of the stream.
    fn pages(self) -> impl Iterator<Item = usize> {
        let page = move |i: usize| match self.down {
            true => self.page - i * PAGE,
            false => self.page + i * PAGE,
        };
        (0..=usize::from(self.ahead)).map(page)
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    /// Address, thread, and [`TRACE_WRITTEN`].
    page: u64,
    sequence: u64,
    /// When it was touched.
    time: u64,
}

impl Entry {
    /// Whether it is the latest entry of its page.
    fn is_current<M: Memory>(self, pages: &mut Pages<M>) -> bool {
        let page = pages.pool.page((self.page & TRACE_PAGE) as usize);
        page.is_some_and(|page| page.last == self.sequence)
    }
}

/// The state of the tracer. There is one; it is on while a window is open.
pub struct Tracer {
    plan: TracePlan,
    /// Whether what the program touches is traced.
    pub on: bool,
    /// Set in the handler: why the windows cost too much.
    pub exhausted: Option<&'static str>,
    /// Blocks of this captured invocation are in use. Another run likely has to take what comes, so after this number of
    /// faults windows are given up.
    pub beside: Option<(Captured, u64)>,
    /// Windows by rising `first`. Filled by ordinary code only.
    pub windows: Vec<Window>,
    /// Faults taken so far.
    pub faults: u64,
    /// Length of the FIFO in runs.
    pub slots: usize,
    /// The program's time.
    pub pace: Pace,
    /// Faults since it was set.
    since: u64,
    /// Sequence number of the last page that left for its age.
    aged: u64,
    /// Pages that came back although they left for lack of room, since the FIFO was made longer.
    back: u64,
    /// Sequence number of the next page that leaves.
    next: u64,
    ring: *mut Run,
    head: usize,
    length: usize,
    /// Pages of the runs in the FIFO.
    held: usize,
    log: *mut Entry,
    room: usize,
    logged: usize,
}

impl Tracer {
    /// A tracer that never runs.
    pub const fn none() -> Tracer {
        Tracer {
            plan: TracePlan {
                slots: 0,
                pages: 0,
                faults: 0,
            },
            on: false,
            exhausted: None,
            beside: None,
            windows: Vec::new(),
            faults: 0,
            slots: 0,
            pace: Pace::new(),
            since: 0,
            aged: 0,
            back: 0,
            next: 1,
            ring: std::ptr::null_mut(),
            head: 0,
            length: 0,
            held: 0,
            log: std::ptr::null_mut(),
            room: 0,
            logged: 0,
        }
    }

    /// Reserves memory for a tracer: with its range. None if the system refuses.
    pub fn reserve(plan: TracePlan) -> Option<(Tracer, (usize, usize))> {
        let pages = usize::try_from(plan.pages).ok()?.min(1 << 28);
        let room = (2 * pages).max(LOG);
        let size = RING * size_of::<Run>() + room * size_of::<Entry>();
        let start = arena::reserve(arena::WANTED + 10 * arena::SIZE, size)?;
        let tracer = Tracer {
            plan,
            ring: start as *mut Run,
            log: (start + RING * size_of::<Run>()) as *mut Entry,
            room,
            ..Tracer::none()
        };
        Some((tracer, (start, start + size.next_multiple_of(PAGE))))
    }

    /// Whether each page is to be opened by itself: a FIFO this short is asked for to see more.
    pub fn is_exact(&self) -> bool {
        (1..STREAMS_FROM).contains(&self.plan.slots)
    }

    /// Whether a window is open.
    pub fn wanted(&self) -> bool {
        self.windows.iter().any(|w| !w.ended)
    }

    /// Begins a window after so many captures. Nothing is traced for a window that begins `inside` one. Everything is open, so
    /// the FIFO is empty.
    pub fn begin(&mut self, plan: usize, began: String, captures: u64, inside: Option<Captured>) {
        let inside = inside.or(self.spent_beside());
        self.windows.push(Window {
            plan,
            began,
            first: self.next,
            faults: self.faults,
            touched: 0,
            cut: None,
            inside,
            captures,
            halts: 0,
            ended: inside.is_some(),
        });
        self.slots = (self.plan.slots as usize).clamp(8, RING / 2);
        self.since = 0;
        self.back = 0;
    }

    /// All windows get a gap.
    pub fn halt(&mut self, cut: Cut) {
        for window in self.windows.iter_mut().filter(|w| !w.ended) {
            window.cut.get_or_insert(cut);
            window.halts += 1;
            window.ended = window.halts >= HALTS;
        }
    }

    /// All windows are given up.
    pub fn stop(&mut self, cut: Cut) {
        self.halt(cut);
        for window in &mut self.windows {
            window.ended = true;
        }
    }

    /// The captured invocation beside whose blocks nothing more is traced.
    fn spent_beside(&self) -> Option<Captured> {
        let (captured, most) = self.beside?;
        (self.faults > most).then_some(captured)
    }

    /// Counts so many faults, or work that takes as long.
    pub fn charge(&mut self, faults: u64) {
        self.since += faults;
        if self.since > self.plan.faults {
            self.since = 0;
            if self.slots < RING / 2 {
                self.slots *= 2;
            } else {
                self.exhausted = Some("it takes too many faults");
            }
        }
    }

    /// A page is touched that last left the FIFO at `before`.
    fn count(&mut self, before: u64) {
        for window in self.windows.iter_mut().rev() {
            // A page still marked as in the FIFO was unmapped meanwhile, and is counted.
            if before >= window.first {
                break;
            }
            window.touched += 1;
        }
    }

    fn pop(&mut self) -> Option<Run> {
        if self.length == 0 {
            return None;
        }
        // SAFETY: within the ring.
        let run = unsafe { *self.ring.add(self.head) };
        self.head = (self.head + 1) % RING;
        self.length -= 1;
        self.held -= 1 + usize::from(run.ahead);
        Some(run)
    }

    fn push(&mut self, run: Run) {
        // SAFETY: within the ring, which is not full.
        unsafe { *self.ring.add((self.head + self.length) % RING) = run };
        self.length += 1;
        self.held += 1 + usize::from(run.ahead);
    }
}

/// Calls in progress whose pages have to stay open. Changed out of turn as well.
static PINS: AtomicU32 = AtomicU32::new(0);

/// Keeps pages open until as many calls of [`Tracer::unpin`] or [`unpin_later`].
pub fn pin_pages() {
    PINS.fetch_add(1, SeqCst);
}

/// Ends a [`pin_pages`] out of turn: pages leave when the next one is opened.
pub fn unpin_later() {
    PINS.fetch_sub(1, SeqCst);
}

/// A page and the thread that touches it, as in an entry of a page trace.
fn entry_of(address: usize, thread: u32) -> u64 {
    address as u64 | u64::from(thread).min(TRACE_THREADS) << TRACE_THREAD_SHIFT
}

impl Tracer {
    /// The pages of `run` were opened, by a fault or for a system call; `new`: they were closed before.
    #[inline]
    pub fn trace<M: Memory>(&mut self, pages: &mut Pages<M>, run: Run, new: bool) {
        if !self.on {
            return;
        }
        self.faults += 1;
        self.charge(1);
        if let Some(captured) = self.spent_beside() {
            self.exhausted = Some("blocks of a captured invocation are in use");
            for window in &mut self.windows {
                window.inside.get_or_insert(captured);
            }
        }
        if !new {
            return;
        }
        if self.length == RING {
            self.exhausted = Some("a system call reaches too much memory");
            return;
        }
        for address in run.pages() {
            if let Some(page) = pages.pool.page(address) {
                self.count(page.last);
                self.back += u64::from(page.last != IN_FIFO && page.last > self.aged);
                page.last = IN_FIFO;
            }
        }
        if self.back > BACK * self.slots as u64 && !self.is_exact() && self.slots < RING / 2 {
            self.back = 0;
            self.slots *= 2;
        }
        self.push(run);
        self.evict(pages);
    }

    /// Closes runs beyond the FIFO's length, or while mappings run short, and those that have been in it for long.
    fn evict<M: Memory>(&mut self, pages: &mut Pages<M>) {
        while PINS.load(SeqCst) == 0 && self.length > 8 {
            let old = self.is_first_old();
            let full = self.length > self.slots
                || self.held > self.slots * PAGES_PER_SLOT
                || pages.is_short();
            if !old && !full {
                break;
            }
            let Some(run) = self.pop() else { break };
            self.leave(pages, run, true);
            if old {
                self.aged = self.next - 1;
            }
        }
    }

    /// Whether the run that entered the FIFO first has been in it for so long that what is in use still is to show again.
    fn is_first_old(&self) -> bool {
        // SAFETY: within the ring.
        let first = unsafe { &*self.ring.add(self.head) };
        !self.is_exact() && self.pace.time() - first.time > TRACE_IN_USE
    }

    /// Ends a [`pin_pages`] in turn.
    pub fn unpin<M: Memory>(&mut self, pages: &mut Pages<M>) {
        unpin_later();
        if self.on {
            self.evict(pages);
        }
    }

    /// Empties the FIFO into the log without closing: everything is about to be opened, or stays as it is.
    pub fn drain<M: Memory>(&mut self, pages: &mut Pages<M>) {
        if self.on {
            self.pace.pause(pages.memory.time());
        }
        while let Some(run) = self.pop() {
            self.leave(pages, run, false);
        }
    }

    /// A system call of `thread` reached [start, start + length) with everything open.
    pub fn log_range<M: Memory>(
        &mut self,
        pages: &mut Pages<M>,
        (start, length): (usize, usize),
        written: bool,
        thread: u32,
    ) {
        let end = start.saturating_add(length);
        let mut at = start & !(PAGE - 1);
        while let Some((start, stop)) = pages.spans.part(at, end) {
            at = start;
            while at < stop {
                let Some(page) = pages.pool.page(at) else {
                    return;
                };
                self.count(page.last);
                page.last = self.next;
                let entry = (entry_of(at, thread), self.pace.time());
                self.note_left(pages, entry, written);
                at += PAGE;
            }
        }
    }

    /// A run has left the FIFO.
    fn leave<M: Memory>(&mut self, pages: &mut Pages<M>, run: Run, close: bool) {
        // What is closed together.
        let mut open = (0, 0);
        for address in run.pages() {
            // It may be in the FIFO twice: it was unmapped meanwhile.
            let page = pages.pool.page(address);
            let Some(page) = page.filter(|page| page.last == IN_FIFO) else {
                continue;
            };
            page.last = self.next;
            let page = *page;
            let rights = pages.rights(&page);
            let entry = (entry_of(address, run.thread), run.time);
            self.note_left(pages, entry, rights & WRITE != 0);
            if !close || rights == 0 {
                continue;
            }
            open = match address {
                _ if open.1 == address => (open.0, address + PAGE),
                _ if address + PAGE == open.0 => (address, open.1),
                _ => {
                    pages.close_pages(open.0, open.1);
                    (address, address + PAGE)
                }
            };
        }
        pages.close_pages(open.0, open.1);
    }

    /// Logs a page whose [`Page::last`] is the next sequence number.
    fn note_left<M: Memory>(
        &mut self,
        pages: &mut Pages<M>,
        (entry, time): (u64, u64),
        written: bool,
    ) {
        if self.logged == self.room {
            self.compact(pages);
        }
        let entry = Entry {
            page: entry | if written { TRACE_WRITTEN } else { 0 },
            sequence: self.next,
            time,
        };
        // SAFETY: within the log, which is not full.
        unsafe { *self.log.add(self.logged) = entry };
        self.logged += 1;
        self.next += 1;
    }

    /// The log is full: drops outdated entries, then the oldest so that at most half remain.
    fn compact<M: Memory>(&mut self, pages: &mut Pages<M>) {
        let (log, mut kept) = (self.log, 0);
        for i in 0..self.logged {
            // SAFETY: within the log.
            let entry = unsafe { *log.add(i) };
            if entry.is_current(pages) {
                // SAFETY: within the log.
                unsafe { *log.add(kept) = entry };
                kept += 1;
            }
        }
        let half = self.room / 2;
        if kept > half {
            for i in 0..half {
                // SAFETY: within the log; volatile, lest the compiler calls libc's memmove.
                unsafe {
                    let entry = log.add(kept - half + i).read_volatile();
                    log.add(i).write_volatile(entry);
                }
            }
            kept = half;
        }
        self.logged = kept;
    }

    /// How long ago an entry's page was touched, in [`TRACE_AGE_UNIT`].
    fn age(&self, entry: Entry) -> u64 {
        let age = (self.pace.time() - entry.time) / TRACE_AGE_UNIT;
        age.min(u64::MAX >> TRACE_AGE_SHIFT)
    }

    /// The pages that left the FIFO last and are still mapped, at most as many as the plan has, in the order of
    /// [`cere_format::capture::RawCapture`]. Ordinary code.
    pub fn snapshot<M: Memory>(&mut self, pages: &mut Pages<M>, first: u64) -> Vec<u64> {
        let most = self.plan.pages as usize;
        let mut found = Vec::new();
        for i in (0..self.logged).rev() {
            // SAFETY: within the log.
            let entry = unsafe { *self.log.add(i) };
            if entry.sequence < first || found.len() >= most {
                break;
            }
            let address = (entry.page & TRACE_PAGE) as usize;
            if entry.is_current(pages) && pages.spans.find(address).is_some() {
                found.push(entry.page | self.age(entry) << TRACE_AGE_SHIFT);
            }
        }
        found.reverse();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Access;
    use super::super::streams::AHEAD;
    use super::super::testing::Program;
    use super::super::touch::Touched;
    use super::*;

    fn touch(program: &mut Program, pages: impl IntoIterator<Item = usize>, access: Access) {
        for i in pages {
            assert_eq!(program.touch(i, access), Touched::Opened);
        }
    }

    fn open(program: &Program, pages: usize) -> Vec<usize> {
        (0..pages).filter(|i| program.rights(*i) != 0).collect()
    }

    fn snapshot(program: &mut Program) -> Vec<u64> {
        let engine = &mut program.engine;
        engine.tracer.drain(&mut engine.pages);
        engine.tracer.snapshot(&mut engine.pages, 0)
    }

    #[test]
    fn the_page_that_was_opened_first_is_closed_first() {
        let mut program = Program::traced(20, 10);
        touch(&mut program, 0..12, Access::Read);
        assert_eq!(open(&program, 20), Vec::from_iter(2..12));
        // It comes again, at the end.
        touch(&mut program, [0], Access::Read);
        assert_eq!(open(&program, 20), [0, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        let order = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0];
        let expected: Vec<u64> = order.iter().map(|i| program.page(*i) as u64).collect();
        assert_eq!(snapshot(&mut program), expected);
        assert_eq!(program.engine.tracer.windows[0].touched, 12);
    }

    #[test]
    fn written_pages_and_threads_are_logged() {
        let mut program = Program::traced(4, 8);
        program.engine.toucher = 3;
        touch(&mut program, [2], Access::Write);
        program.engine.toucher = 0;
        touch(&mut program, [1], Access::Read);
        let written = program.page(2) as u64 | TRACE_WRITTEN | 3 << TRACE_THREAD_SHIFT;
        let read = program.page(1) as u64;
        assert_eq!(snapshot(&mut program), [written, read]);
    }

    #[test]
    fn what_is_pinned_stays_open() {
        let mut program = Program::traced(20, 8);
        pin_pages();
        touch(&mut program, 0..12, Access::Read);
        assert_eq!(open(&program, 20).len(), 12);
        program.engine.unpin();
        assert_eq!(open(&program, 20), Vec::from_iter(4..12));
    }

    #[test]
    fn the_fifo_is_short_where_mappings_are() {
        let mut program = Program::traced(100, 64);
        program.engine.pages.budget = 24;
        touch(&mut program, (0..100).step_by(2), Access::Read);
        let open = open(&program, 100).len();
        assert!(open < 16, "{open}");
    }

    #[test]
    fn the_fifo_doubles_with_the_faults() {
        let mut program = Program::traced(1, 8);
        let tracer = &mut program.engine.tracer;
        assert_eq!(tracer.slots, 8);
        tracer.charge(1001);
        assert_eq!(tracer.slots, 16);
        while tracer.slots < RING / 2 {
            tracer.charge(1001);
        }
        assert!(tracer.exhausted.is_none());
        tracer.charge(1001);
        assert!(tracer.exhausted.is_some());
    }

    #[test]
    fn a_window_ends_after_many_gaps() {
        let mut program = Program::traced(1, 8);
        let tracer = &mut program.engine.tracer;
        tracer.halt(Cut::Signal(1));
        for _ in 2..HALTS {
            tracer.halt(Cut::Signal(2));
        }
        assert!(tracer.wanted());
        tracer.halt(Cut::Signal(3));
        assert!(!tracer.wanted());
        assert_eq!(tracer.windows[0].cut, Some(Cut::Signal(1)));
    }

    #[test]
    fn a_full_log_keeps_what_left_last() {
        let mut program = Program::traced(3, 8);
        let pages = [0, 1].map(|i| program.page(i));
        let engine = &mut program.engine;
        for i in 0..LOG + 100 {
            let range = (pages[i % 2], PAGE);
            engine.tracer.log_range(&mut engine.pages, range, false, 0);
        }
        assert!(engine.tracer.logged < 200);
        let expected = pages.map(|page| page as u64);
        assert_eq!(snapshot(&mut program), expected);
    }

    #[test]
    fn streams_are_traced_in_runs() {
        let mut program = Program::traced(300, STREAMS_FROM.into());
        program.engine.tracer.slots = 8;
        program.engine.streams.most = AHEAD;
        let mut faults = 0;
        for i in (50..250).rev() {
            if program.rights(i) == 0 {
                touch(&mut program, [i], Access::Write);
                faults += 1;
            }
        }
        assert!(faults < 20, "{faults}");
        // The runs that came first have left.
        assert!((240..250).all(|i| program.rights(i) == 0));
        let trace = snapshot(&mut program);
        let touched = program.engine.tracer.windows[0].touched as usize;
        assert!((200..=200 + AHEAD).contains(&touched), "{touched}");
        // As many as the plan has, the latest last.
        let lowest = 250 - touched;
        let expected = (lowest..lowest + 100).rev();
        let expected = expected.map(|i| program.page(i) as u64 | TRACE_WRITTEN);
        assert_eq!(trace, expected.collect::<Vec<_>>());
    }

    #[test]
    fn windows_are_given_up_beside_blocks_in_use() {
        let mut program = Program::traced(20, 8);
        let captured = Captured {
            number: 1,
            wanted: 0,
            invocation: 3,
        };
        program.engine.tracer.beside = Some((captured, 4));
        touch(&mut program, 0..4, Access::Read);
        assert!(program.engine.tracer.exhausted.is_none());
        touch(&mut program, 4..5, Access::Read);
        let tracer = &mut program.engine.tracer;
        assert!(tracer.exhausted.is_some());
        assert_eq!(tracer.windows[0].inside, Some(captured));
        tracer.begin(1, String::new(), 0, None);
        assert_eq!(tracer.windows[1].inside, Some(captured));
    }
}
