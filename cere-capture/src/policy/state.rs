//! What captures need to know beside the engine: what is wanted, what was done.

use crate::engine::level::Captured;
use crate::engine::state::Engine;
use cere_format::abi::RegionDescriptor;
use cere_format::profile::RegionKey;
use std::path::PathBuf;

/// Everything that captures need. The engine is used in turn ([`crate::engine::turn`]), the rest by the main thread.
pub struct State {
    /// Memory and the capture in progress.
    pub engine: Engine,
    /// The regions, in the order of the plan.
    pub wanted: Vec<Region>,
    /// Where results go.
    pub directory: PathBuf,
    /// Thread pointer of the thread that is captured.
    pub thread: usize,
    /// Most mappings that the kernel allows.
    pub mapping_limit: usize,
    /// Start of an image, and whether it is instrumented.
    pub known: Vec<(usize, bool)>,
    /// What captures so far mean for later ones.
    pub past: Past,
    /// The windows of the page trace.
    pub windows: Vec<Planned>,
    /// All regions of the loaded images.
    pub all: Vec<*mut RegionDescriptor>,
    /// Whether all of them have a hook, so that an interrupted trace goes on.
    pub listens: bool,
    /// Wanted invocations that could not be captured, to be noted. Capacity is MISSED.
    pub missed: Vec<Missed>,
}

/// A region of which invocations are wanted.
pub struct Region {
    /// Which region.
    pub key: RegionKey,
    /// Those wanted.
    pub invocations: Vec<u64>,
    /// Times entered so far.
    pub count: u64,
    /// The next invocation that is wanted or begins a window; `u64::MAX` if none.
    pub next: u64,
    /// Invocations that begin windows of the page trace, rising.
    pub starts: Vec<Start>,
    /// The last captured invocation that it ran inside.
    pub inside: Option<Captured>,
    /// Whether invocations of it are wanted at all.
    pub listed: bool,
    /// Its descriptors with a hook.
    pub armed: Vec<*mut RegionDescriptor>,
}

impl Region {
    /// A region of which nothing is wanted.
    pub fn new(key: RegionKey) -> Region {
        Region {
            key,
            invocations: Vec::new(),
            count: 0,
            next: u64::MAX,
            starts: Vec::new(),
            inside: None,
            listed: false,
            armed: Vec::new(),
        }
    }

    /// Finds the next invocation of interest after those that were.
    pub fn look_ahead(&mut self) {
        let later = |i: &u64| *i > self.count;
        let wanted = self.invocations.iter().copied().find(later);
        let starts = self.starts.iter().map(|s| s.count).find(later);
        let next = wanted.into_iter().chain(starts).min();
        self.next = next.unwrap_or(u64::MAX);
    }
}

/// A window that is to come.
pub struct Planned {
    /// Place of its region among the wanted ones.
    pub wanted: usize,
    /// The wanted invocation, where it ends.
    pub invocation: u64,
    /// The event of the program's start, for people, if it begins with that.
    pub at_start: Option<String>,
    /// It has begun, or its wanted invocation has.
    pub past: bool,
}

/// An invocation that begins a window.
pub struct Start {
    /// Which, from 1.
    pub count: u64,
    /// Which window.
    pub window: usize,
    /// The event for people.
    pub name: String,
}

/// What earlier captures mean for later ones.
#[derive(Debug, Default)]
pub struct Past {
    /// Captures begun.
    pub number: u64,
    /// Most bytes that were free in the region heap when one began.
    pub freed: usize,
    /// The last one that found next to nothing free in the region heap, and how much memory the program's allocator had then.
    pub allocator: Option<(Captured, usize)>,
}

/// An invocation that is wanted and was entered by a handler of the program that had interrupted the library.
#[derive(Debug, Clone, Copy)]
pub struct Missed {
    /// Its descriptor.
    pub region: *mut RegionDescriptor,
    /// Place of its region among the wanted ones.
    pub wanted: usize,
    /// Which invocation, from 1.
    pub invocation: u64,
}

/// How many of them can be noted.
pub const MISSED: usize = 1024;

impl State {
    /// The capture in progress.
    pub fn captured(&self) -> Option<Captured> {
        let level = self.engine.level.as_ref()?;
        Some(Captured {
            number: self.past.number,
            wanted: level.wanted,
            invocation: level.invocation,
        })
    }

    /// The window of a wanted invocation, by its place in the plan.
    pub fn window(&self, wanted: usize, invocation: u64) -> Option<usize> {
        let is = |w: &Planned| w.wanted == wanted && w.invocation == invocation;
        self.windows.iter().position(is)
    }
}
