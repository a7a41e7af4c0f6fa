//! The state of captures and page traces: when memory is closed and opened.

use super::level::Level;
use super::memory::{Memory, System};
use super::pages::Pages;
use super::tracer::Tracer;
use super::{clock, gate, parallel, status, turn};

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
pub struct Engine<M = System> {
    /// Memory.
    pub pages: Pages<M>,
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
    /// Number of the thread whose touch it is: 0 for the one that entered the region.
    pub toucher: u32,
}

impl<M: Memory> Engine<M> {
    /// An engine that closes nothing yet.
    pub fn new(pages: Pages<M>, tracer: Tracer, own: Vec<(usize, usize)>) -> Engine<M> {
        Engine {
            pages,
            level: None,
            tracer,
            place: Place::default(),
            own,
            stacks: Vec::new(),
            toucher: 0,
        }
    }

    /// Whether memory is to be closed.
    pub fn at_work(&self) -> bool {
        self.tracer.on || self.level.is_some()
    }

    /// Has those without a turn know whether memory is to be closed: before their calls are held, and after they were let go.
    pub fn publish(&self) {
        status::set_at_work(self.at_work());
    }

    /// Protects all memory: the next touch of each page faults.
    pub fn close(&mut self) -> Result<(), String> {
        gate::closed();
        if self.level.is_some() {
            clock::close();
        }
        self.pages.close()
    }

    /// Gives all memory the protection that the program gave it; other threads may go on.
    pub fn open(&mut self) {
        self.uncover();
        gate::opened();
    }

    /// Gives all memory the protection that the program gave it, for a moment: the system calls of other threads stay held.
    pub fn uncover(&mut self) {
        clock::open();
        self.tracer.drain(&mut self.pages);
        self.pages.open();
    }

    /// Whether other threads run in a parallel region while memory is closed.
    pub fn shared(&self) -> bool {
        turn::team_exists() && parallel::in_parallel() && self.at_work()
    }

    /// What a system call reached may leave the page trace, after [`super::tracer::pin`]. In turn.
    pub fn unpin(&mut self) {
        self.tracer.unpin(&mut self.pages);
    }

    /// The tracer ends while captures go on: what is open stays so.
    pub fn detach(&mut self) {
        self.tracer.drain(&mut self.pages);
        self.tracer.on = false;
    }
}
