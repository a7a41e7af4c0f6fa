//! The state of captures beside the engine: what is wanted, and what was done.

use super::outermost::Outermost;
use crate::engine::level::Captured;
use crate::engine::state::Engine;
use cere_format::abi::RegionDescriptor;
use cere_format::profile::RegionKey;
use std::path::PathBuf;

/// Everything that captures need. The engine is used in turn ([`crate::engine::turn`]), the rest by the thread that
/// leads ([`crate::engine::lead`]).
pub struct State {
    /// Memory and the capture in progress.
    pub engine: Engine,
    /// The regions, in the order of the plan.
    pub wanted: Vec<Region>,
    /// Where results go.
    pub directory: PathBuf,
    /// The file of the copies of the capture in progress.
    pub kept: Option<PathBuf>,
    /// Stacks for the signal handlers of captured threads other than the main one: thread pointer, and [start, end).
    pub stacks: Vec<(usize, (usize, usize))>,
    /// Maximum number of mappings that the kernel allows.
    pub mapping_limit: usize,
    /// Starts of images, and whether they are instrumented.
    pub known: Vec<(usize, bool)>,
    /// Starts of libraries that a replay loads fresh, and the functions that they chose by processor.
    pub chosen: Vec<(usize, Vec<(u64, u64)>)>,
    /// The C library, which is asked what it keeps.
    pub c_library: Option<cere_inside::clibrary::Library>,
    /// Names and addresses of this library's functions.
    pub interposed: Vec<(String, u64)>,
    /// What captures so far mean for later ones.
    pub past: Past,
    /// The windows of the page trace.
    pub windows: Vec<Planned>,
    /// All regions of the loaded images.
    pub all: Vec<*mut RegionDescriptor>,
    /// Whether all regions have the hook, so that a suspended trace continues.
    pub listens: bool,
    /// Wanted invocations that could not be captured, to be written. Capacity is [`MISSED`].
    pub missed: Vec<Missed>,
}

/// A region of which invocations are wanted.
pub struct Region {
    /// Which region.
    pub key: RegionKey,
    /// The thread, by its number among those that were started; 0: the first one.
    pub thread: u64,
    /// Those wanted.
    pub invocations: Vec<u64>,
    /// Seconds that its longest invocation took in the profile, if known.
    pub seconds: Option<f64>,
    /// Times entered so far.
    pub count: u64,
    /// Of a function: its outermost call in progress, in the first thread.
    pub outermost: Outermost,
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
    /// Times that other threads entered it while armed, once it is dormant again.
    pub elsewhere: u64,
}

impl Region {
    /// A region of which nothing is wanted.
    pub fn new(key: RegionKey) -> Region {
        Region {
            key,
            thread: 0,
            invocations: Vec::new(),
            seconds: None,
            count: 0,
            outermost: Outermost::default(),
            next: u64::MAX,
            starts: Vec::new(),
            inside: None,
            listed: false,
            armed: Vec::new(),
            elsewhere: 0,
        }
    }

    /// Finds the next invocation of interest after the present count.
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
    /// Index of its region among the wanted ones.
    pub wanted: usize,
    /// The wanted invocation, where it ends.
    pub invocation: u64,
    /// Name of the program's start, if the window begins with that.
    pub at_start: Option<String>,
    /// Whether it has begun, or its wanted invocation has.
    pub past: bool,
}

/// An invocation that begins a window.
pub struct Start {
    /// Which, from 1.
    pub count: u64,
    /// Which window.
    pub window: usize,
    /// Name of the event.
    pub name: String,
}

/// What earlier captures mean for later ones.
#[derive(Debug, Default)]
pub struct Past {
    /// Captures begun.
    pub number: u64,
    /// The last one.
    pub last: Option<Captured>,
    /// Maximum of the free bytes in the region heap when a capture began.
    pub freed: usize,
    /// The last capture that began with almost nothing free in the region heap, and the memory of the program's allocator then.
    pub allocator: Option<(Captured, usize)>,
}

/// A wanted invocation that a handler of the program entered in a section of the library.
#[derive(Debug, Clone, Copy)]
pub struct Missed {
    /// Its descriptor.
    pub region: *mut RegionDescriptor,
    /// Index of its region among the wanted ones.
    pub wanted: usize,
    /// Which invocation, from 1.
    pub invocation: u64,
}

/// Maximum number of noted ones.
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

    /// Index of the window of a wanted invocation.
    pub fn window(&self, wanted: usize, invocation: u64) -> Option<usize> {
        let is = |w: &Planned| w.wanted == wanted && w.invocation == invocation;
        self.windows.iter().position(is)
    }
}
