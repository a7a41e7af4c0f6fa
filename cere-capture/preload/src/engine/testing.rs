//! Engines for tests: protection is a table, so that nothing faults and no handler runs.

use super::level::Level;
use super::memory::{Access, Memory, READ, WRITE};
use super::pages::Pages;
use super::pool::{Page, Pool, Touch};
use super::spans::{Span, Spans};
use super::state::Engine;
use super::touch::Touched;
use super::tracer::Tracer;
use crate::os::sys::PAGE;
use cere_format::capture::{EntryState, TracePlan};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Memory whose protection is noted, and nothing else.
#[derive(Default)]
pub struct Table {
    /// Rights by page, where they were set.
    pub rights: BTreeMap<usize, u8>,
    /// Calls of `protect`, the oldest first.
    pub calls: Vec<(usize, usize, u8)>,
    /// The result of `protect` for ranges of at most so many bytes.
    pub refused: Option<(usize, isize)>,
    /// Pages that are not mapped.
    pub unmapped: Vec<usize>,
    /// The result of the next calls of the program.
    pub result: isize,
    /// Calls of the program, the oldest first.
    pub made: Vec<(i64, [usize; 6])>,
    /// The time.
    pub now: u64,
}

impl Memory for Table {
    unsafe fn protect(&mut self, start: usize, end: usize, rights: u8) -> isize {
        self.calls.push((start, end, rights));
        if let Some((most, error)) = self.refused
            && end - start <= most
        {
            return -error;
        }
        for page in (start..end).step_by(PAGE) {
            self.rights.insert(page, rights);
        }
        0
    }

    fn is_mapped(&self, start: usize, length: usize) -> bool {
        let mut pages = (start..start + length).step_by(PAGE);
        !pages.any(|page| self.unmapped.contains(&page))
    }

    unsafe fn populate(&mut self, _: usize, _: usize) {}

    fn read_in(&mut self, _: usize, _: usize) -> isize {
        0
    }

    unsafe fn call(&mut self, number: i64, arguments: [usize; 6]) -> isize {
        self.made.push((number, arguments));
        self.result
    }

    fn time(&self) -> u64 {
        self.now
    }
}

/// A program of some pages that may be read and written, with its engine, which opens nothing ahead.
pub struct Program {
    /// First address.
    pub start: usize,
    /// The engine; all pages are closed.
    pub engine: Engine<Table>,
    /// What a call in progress keeps open is counted for the whole process.
    _alone: MutexGuard<'static, ()>,
}

impl Program {
    /// A program of `pages` pages, each of which holds its number from 1.
    pub fn new(pages: usize) -> Program {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        let size = pages * PAGE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, flags, -1, 0) };
        let start = start as usize;
        let pool = Pool::reserve().expect("address space");
        // SAFETY: the pool's room for spans.
        let spans = unsafe { Spans::new(pool.spans()) };
        let mut pages = Pages::new(Table::default(), pool, spans);
        pages.budget = 1000;
        pages.pool.allow(1 << 20);
        let span = Span {
            start,
            end: start + size,
            protection: READ | WRITE,
            kind: 0,
        };
        assert!(pages.spans.insert(span));
        let mut engine = Engine::new(pages, Tracer::none(), Vec::new());
        (engine.first.most, engine.streams.most) = (0, 0);
        engine.close().expect("a table");
        let program = Program {
            start,
            engine,
            _alone: alone,
        };
        for i in 0..size / PAGE {
            program.write(i, i as u8 + 1);
        }
        program
    }

    /// The same with a capture in progress.
    pub fn captured(pages: usize) -> Program {
        let mut program = Program::new(pages);
        let entry = EntryState {
            stack_pointer: 0,
            arguments: 0,
            arguments_size: 0,
            mxcsr: 0,
            x87_control: 0,
            frames: None,
        };
        let nothing = std::ptr::null_mut();
        program.engine.level = Some(Level::new(nothing, (0, 1), entry, (0, 0), Vec::new()));
        program
    }

    /// The same with a page trace.
    pub fn traced(pages: usize, slots: u64) -> Program {
        let mut program = Program::new(pages);
        let plan = TracePlan {
            slots: slots as _,
            pages: 100,
            faults: 1000,
        };
        let (mut tracer, _) = Tracer::reserve(plan).expect("address space");
        tracer.begin(0, String::new(), 0, None);
        tracer.on = true;
        program.engine.tracer = tracer;
        program
    }

    /// Start, end and rights of the memory under protection.
    pub fn spans(&self) -> Vec<(usize, usize, u8)> {
        let all = self.engine.pages.spans.all().iter();
        all.map(|s| (s.start, s.end, s.protection)).collect()
    }

    /// What the engine knows of a page.
    pub fn known(&mut self, i: usize) -> Page {
        let page = self.page(i);
        *self.engine.pages.pool.page(page).expect("room")
    }

    /// Touches a page.
    pub fn touch(&mut self, i: usize, access: Access) -> Touched {
        let page = self.page(i);
        self.engine.touch(page, access)
    }

    /// Address of a page.
    pub fn page(&self, i: usize) -> usize {
        self.start + i * PAGE
    }

    /// Writes the first byte of a page.
    pub fn write(&self, i: usize, value: u8) {
        // SAFETY: memory of our own.
        unsafe { *(self.page(i) as *mut u8) = value };
    }

    /// What may be done with a page now.
    pub fn rights(&self, i: usize) -> u8 {
        self.engine.pages.memory.rights[&self.page(i)]
    }

    /// What the capture has touched.
    pub fn touches(&self) -> Vec<Touch> {
        let touched = self.engine.level.as_ref().map_or(0, |l| l.touched);
        // SAFETY: the capture's entries, copied.
        unsafe { self.engine.pages.pool.log(touched) }.to_vec()
    }

    /// First byte of a page at the entry of the capture.
    pub fn at_entry(&mut self, touch: &Touch) -> u8 {
        // SAFETY: the copy of this touch.
        unsafe { self.engine.pages.pool.content(touch.copy)[0] }
    }
}
