//! The state of captures and page traces: when memory is closed and opened.

use super::level::Level;
use super::memory::{Memory, System};
use super::pages::Pages;
use super::streams::Streams;
use super::tracer::Tracer;
use super::{clock, gate, parallel, status, turn};
use crate::os::files::FileError;
use std::fmt::{self, Display, Formatter};

/// Stack and control block of the thread whose memory is closed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// [start, end) of the mapping that holds its stack pointer.
    pub stack: (usize, usize),
    /// Whether the kernel lets that mapping grow.
    pub grows: bool,
    /// Whether that is the thread's own stack: below the pointer nothing is in use.
    pub own: bool,
    /// Its control block and static thread-local storage, whole pages.
    pub control: (usize, usize),
}

/// Why memory cannot be closed, or a capture not hold it. [`Engine::close`] makes it in handlers: without allocation.
#[derive(Debug)]
pub enum Obstacle {
    /// What is mapped is not known.
    Mappings(FileError),
    /// There are more mappings than the engine has room for.
    TooMany,
    /// The kernel refuses to protect [start, end), with this error.
    Protection(usize, usize, isize),
    /// There is no memory for copies.
    NoMemory,
    /// The thread-local storage has more pages than a capture notes.
    ThreadStorage,
}

impl Display for Obstacle {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Obstacle::Mappings(e) => e.fmt(f),
            Obstacle::TooMany => f.write_str("the program has too many mappings"),
            Obstacle::Protection(start, end, error) => {
                write!(f, "{start:#x}-{end:#x} cannot be protected (error {error})")
            }
            Obstacle::NoMemory => f.write_str("no memory is left"),
            Obstacle::ThreadStorage => f.write_str("the thread-local storage is too large"),
        }
    }
}

/// The state of captures and page traces of the process.
pub struct Engine<M = System> {
    /// Memory.
    pub pages: Pages<M>,
    /// The capture in progress. There is one at most: captures do not lie in one another.
    pub level: Option<Level>,
    /// The page trace.
    pub tracer: Tracer,
    /// Streams of pages that the capture did not have. Apart from the others, so that what a capture holds does not depend on
    /// page traces beside it.
    pub first: Streams,
    /// Streams of all other touches, since memory was closed.
    pub streams: Streams,
    /// Place of the captured or traced thread.
    pub place: Place,
    /// [start, end) of what is never protected: the library's own memory and image.
    pub own: Vec<(usize, usize)>,
    /// Stacks of other threads that run, or rest in a call, never protected either.
    pub stacks: Vec<(usize, usize)>,
    /// Whether there are other threads.
    pub others: bool,
    /// Number of the touching thread: 0 for the one that entered the region.
    pub toucher: u32,
}

impl<M: Memory> Engine<M> {
    /// An engine that closes nothing yet.
    pub fn new(pages: Pages<M>, tracer: Tracer, own: Vec<(usize, usize)>) -> Engine<M> {
        Engine {
            pages,
            level: None,
            tracer,
            first: Streams::new(),
            streams: Streams::new(),
            place: Place::default(),
            own,
            stacks: Vec::new(),
            others: false,
            toucher: 0,
        }
    }

    /// Whether memory is to be closed.
    pub fn at_work(&self) -> bool {
        self.tracer.on || self.level.is_some()
    }

    /// Publishes [`Engine::at_work`] to threads without a turn: before their calls are held, and after they are released.
    pub fn publish(&self) {
        status::set_at_work(self.at_work());
    }

    /// Protects all memory: the next touch of each page faults.
    pub fn close(&mut self) -> Result<(), Obstacle> {
        gate::memory_closes();
        if self.level.is_some() {
            clock::close_shared_page();
        }
        self.streams.clear();
        if self.level.as_ref().is_none_or(|l| l.started == 0) {
            self.first.clear();
        }
        self.pages
            .close()
            .map_err(|(span, error)| Obstacle::Protection(span.start, span.end, error))?;
        self.tracer.pace.go_on(self.pages.memory.time());
        Ok(())
    }

    /// Restores the program's protection of all memory; other threads continue.
    pub fn open(&mut self) {
        self.uncover();
        gate::memory_opened();
    }

    /// Restores the program's protection for a moment: the system calls of other threads stay held.
    pub fn uncover(&mut self) {
        clock::open_shared_page();
        self.tracer.drain(&mut self.pages);
        self.pages.open();
    }

    /// Whether other threads run in a parallel region while memory is closed.
    pub fn shared(&self) -> bool {
        turn::team_exists() && parallel::in_parallel() && self.at_work()
    }

    /// Ends a [`super::tracer::pin_pages`]: pages that a system call reached may leave the FIFO. In turn.
    pub fn unpin(&mut self) {
        self.tracer.unpin(&mut self.pages);
    }

    /// Turns the tracer off during a capture: open pages stay open.
    pub fn detach(&mut self) {
        self.tracer.drain(&mut self.pages);
        self.tracer.on = false;
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::{Access, READ, WRITE};
    use super::super::spans::Span;
    use super::super::testing::Program;
    use super::super::touch::Touched;
    use crate::os::sys::PAGE;

    #[test]
    fn what_was_open_is_closed_again() {
        let mut program = Program::captured(3);
        assert_eq!(program.touch(1, Access::Write), Touched::Opened);
        program.engine.open();
        assert!((0..3).all(|i| program.rights(i) == READ | WRITE));
        program.engine.close().expect("a table");
        assert!((0..3).all(|i| program.rights(i) == 0));
        let page = program.page(1);
        assert!(!program.engine.pages.is_open(page, Access::Read));
        // It is the capture's already.
        assert_eq!(program.touch(1, Access::Read), Touched::Opened);
        assert_eq!(program.rights(1), READ);
        assert_eq!(program.touches().len(), 1);
    }

    #[test]
    fn neighbours_with_the_same_rights_are_opened_together() {
        let mut program = Program::new(4);
        let (start, end) = (program.start, program.page(4));
        for i in [1, 3] {
            let span = Span {
                start: program.page(i),
                end: program.page(i + 1),
                protection: READ | WRITE,
                kind: 1,
            };
            assert!(program.engine.pages.spans.insert(span));
        }
        program.engine.pages.memory.calls.clear();
        program.engine.open();
        let calls = &program.engine.pages.memory.calls;
        assert_eq!(*calls, [(start, end, READ | WRITE)]);
    }

    #[test]
    fn memory_that_cannot_be_closed_is_named() {
        let mut program = Program::new(1);
        program.engine.pages.memory.refused = Some((PAGE, 12));
        let message = program.engine.close().expect_err("no memory").to_string();
        let (start, end) = (program.start, program.page(1));
        let expected = format!("{start:#x}-{end:#x} cannot be protected (error 12)");
        assert_eq!(message, expected);
    }
}
