//! The threads of the process.

use super::format::{Cell, brief, count, name, percent};
use cere_format::profile::{OverThreads, Profile, ThreadProfile};

/// Rows of each table, at most.
const MOST: usize = 100;

/// The section on threads.
pub struct Threads {
    pub threads: Vec<Thread>,
    pub regions: Vec<Region>,
    /// Threads and regions that are left out.
    pub more: (usize, usize),
}

/// A thread.
pub struct Thread {
    pub name: String,
    /// Seconds on processors.
    pub processor: Cell,
    /// Of these in regions.
    pub regions: Cell,
    /// In MPI.
    pub mpi: Cell,
    /// Time on processors and in regions, per cent of the longest.
    pub bar: (String, String),
}

/// A region over all threads.
pub struct Region {
    pub name: String,
    /// Threads that entered it.
    pub threads: Cell,
    pub invocations: Cell,
    /// Seconds on processors.
    pub work: Cell,
    /// Seconds in which it waits.
    pub waiting: Cell,
    /// The first thread's part.
    pub first: Cell,
}

/// None if only the first thread entered regions.
pub fn threads(profile: &Profile) -> Option<Threads> {
    if !profile.has_other_threads() {
        return None;
    }
    let seconds = profile.threads.iter().map(|t| t.processor_seconds);
    let longest = seconds.fold(f64::MIN_POSITIVE, f64::max);
    let rows = profile.threads.iter().take(MOST);
    let regions = profile.over_threads.iter().take(MOST);
    Some(Threads {
        threads: rows.map(|t| thread(t, longest)).collect(),
        regions: regions.map(region).collect(),
        more: (
            profile.threads.len().saturating_sub(MOST),
            profile.over_threads.len().saturating_sub(MOST),
        ),
    })
}

fn thread(thread: &ThreadProfile, longest: f64) -> Thread {
    let work = |r: &cere_format::profile::ThreadRegion| r.self_seconds - r.waiting_seconds;
    let regions: f64 = thread.regions.iter().map(work).sum();
    let bar = |seconds: f64| format!("{:.1}", (100.0 * seconds / longest).clamp(0.0, 100.0));
    Thread {
        name: match (thread.number, thread.users) {
            (0, _) => "first".to_owned(),
            (number, 0 | 1) => number.to_string(),
            (last, users) => format!("{users} threads, the last is {last}"),
        },
        processor: Cell::new(thread.processor_seconds, brief),
        regions: Cell::new(regions, brief),
        mpi: Cell::new(thread.mpi_seconds, brief),
        bar: (bar(thread.processor_seconds), bar(regions)),
    }
}

fn region(region: &OverThreads) -> Region {
    Region {
        name: name(&region.name),
        threads: Cell::new(region.threads as f64, |n| count(n as u64)),
        invocations: Cell::new(region.invocations as f64, |n| count(n as u64)),
        work: Cell::new(region.work(), brief),
        waiting: Cell::new(region.waiting_seconds, brief),
        first: Cell::new(region.first_share, percent),
    }
}
