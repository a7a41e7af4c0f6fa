//! Invocations that are wanted of threads other than the first. Each thread counts its own entries of a region, in its hooks,
//! without a lock.

use super::outermost::Outermost;
use super::state::Region;
use crate::os::local::local;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Set once, before the first probe.
static TARGETS: OnceLock<Vec<Target>> = OnceLock::new();

/// A region in one thread.
pub struct Target {
    /// Place of the region's first entry among the wanted ones: what its descriptor says.
    group: usize,
    /// Number of the thread, from 1.
    thread: u64,
    /// Place of this entry among the wanted ones.
    pub wanted: usize,
    /// Times that the thread has entered it.
    count: AtomicU64,
    /// Of a function: its outermost call in progress.
    pub outermost: Outermost,
    /// As [`Region::next`].
    next: AtomicU64,
}

impl Target {
    /// The thread enters the region. Whether that invocation is wanted, or one before it could not be taken.
    pub fn enter(&self) -> bool {
        self.count.fetch_add(1, Relaxed) + 1 >= self.next.load(Relaxed)
    }

    /// Times that it has entered it.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}

/// Sets them, from all that is wanted.
pub fn set(wanted: &[Region]) {
    let target = |(place, region): (usize, &Region)| Target {
        group: group(wanted, place),
        thread: region.thread,
        wanted: place,
        count: AtomicU64::new(0),
        outermost: Outermost::default(),
        next: AtomicU64::new(region.next),
    };
    let others = wanted.iter().enumerate().filter(|(_, r)| r.thread != 0);
    let _ = TARGETS.set(others.map(target).collect());
}

/// Place of the first entry of the same region.
pub fn group(wanted: &[Region], place: usize) -> usize {
    let key = &wanted[place].key;
    wanted.iter().position(|r| r.key == *key).unwrap_or(place)
}

/// Whether anything is wanted of other threads.
pub fn exist() -> bool {
    TARGETS.get().is_some_and(|targets| !targets.is_empty())
}

/// What is wanted of the calling thread in the region whose descriptor says `group`. Any thread but the first.
pub fn of_this_thread(group: usize) -> Option<&'static Target> {
    let own = local().number.load(Relaxed) as u64;
    let mut targets = TARGETS.get()?.iter();
    targets.find(|t| t.group == group && t.thread == own)
}

/// The entry at `wanted`, if it is of another thread than the first.
pub fn at(wanted: usize) -> Option<&'static Target> {
    TARGETS.get()?.iter().find(|t| t.wanted == wanted)
}

/// The next invocation of interest has changed.
pub fn set_next(wanted: usize, next: u64) {
    if let Some(target) = at(wanted) {
        target.next.store(next, Relaxed);
    }
}
