//! What cores share: caches, bandwidth of memory, ways to each other.
//!
//! Pairs of cores work in windows that they begin together; a window counts if both ran all the time. Analysers are pure functions over
//! tables of pairs: [`group`], [`tree`].

pub mod group;
pub mod tree;

mod chase;
mod contend;
mod cores;
mod lockstep;
mod mpi;
mod part;
mod talk;
mod turns;

pub use part::Groups;

use crate::bandwidth::Deadline;
use crate::code::Code;
use crate::document::found;
use crate::place::{self, usable};
use crate::session::Session;
use crate::{Error, not_here, system};
use cere_format::machine::{Cache, Contention, Curve, Found, Layer, Locality};
use part::{Cores, Part};

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Who has each cache, in the order of the caches given; `None` where it was not observed.
    pub shared_by: Vec<Groups>,
    /// Cores that take bandwidth from each other.
    pub contention: Vec<Contention>,
    /// Layers of communication: between cores, then by MPI.
    pub layers: Vec<Layer>,
    /// Cores that are near to each other; `None` with one core.
    pub tree: Option<Locality>,
    /// Cores measured.
    pub measured: Vec<u32>,
    /// How each was found; why one was not.
    pub found: Vec<Found>,
    /// What it was read off.
    pub curves: Vec<Curve>,
    /// What a user should know.
    pub notes: Vec<String>,
}

impl Measured {
    fn take<T>(&mut self, part: Part<T>) -> T {
        self.found.extend(part.found);
        self.curves.extend(part.curves);
        part.value
    }
}

/// Measures what cores share, in at most 14 seconds, quick in 3. `caches` are those measured, the nearest first; `line` the bytes of a line.
/// With one core, or where threads cannot be put on cores, everything is empty and a note says why. An error where memory or threads
/// are refused.
pub fn measure(session: &Session, caches: &[Cache], line: u64) -> Result<Measured, Error> {
    let deadline = Deadline::within(session, session.pick(2.8, 13.5));
    let allowed = place::allowed();
    let usable = usable();
    let mut measured = Measured::default();
    if usable.len() < allowed.len() {
        let refused = allowed.iter().filter(|core| !usable.contains(core));
        let refused: Vec<String> = refused.map(u32::to_string).collect();
        measured.notes.push(format!(
            "no thread can be put on processors {}: they are offline, or the process may not choose",
            refused.join(", ")
        ));
    }
    if usable.len() < 2 {
        return Ok(alone(measured, usable, caches.len()));
    }
    let all = Cores {
        allowed: usable.len(),
        measured: cores::sample(usable.into_iter().map(cores::Spot::of).collect()),
    };
    if all.measured.len() < all.allowed {
        measured.notes.push(format!(
            "{} of {} processors were measured in pairs, chosen from all distances that the system tells",
            all.measured.len(),
            all.allowed
        ));
    }
    let watch = system::Watch::new(&all.measured);
    run(session, caches, line, &all, &deadline, &mut measured)?;
    let disturbed = watch.end();
    for found in &mut measured.found {
        found.confidence *= disturbed.factor();
    }
    measured.notes.extend(disturbed.notes(all.measured.len()));
    measured.measured = all.measured;
    Ok(measured)
}

fn run(
    session: &Session,
    caches: &[Cache],
    line: u64,
    all: &Cores,
    deadline: &Deadline,
    measured: &mut Measured,
) -> Result<(), Error> {
    let line = if line == 0 { 64 } else { line };
    let nearest = caches.first().map(|c| c.size_bytes).filter(|s| *s > 0);
    let message = nearest.unwrap_or(32 << 10);
    if Code::runs() {
        let part = contend::measure(session, caches, all, &deadline.part(0.3))?;
        measured.contention = measured.take(part);
    } else {
        let why = not_here(cere_arch::HERE);
        measured.found.push(found("memory.contention", 0.0, why));
    }
    let part = talk::measure(session, message, all, &deadline.part(0.15))?;
    measured.layers = measured.take(part);
    let part = turns::measure(session, caches, line, all, &deadline.part(0.2))?;
    measured.tree = measured.take(part);
    // Starting MPI takes time of its own.
    let share = deadline.part(session.pick(0.75, 0.4));
    let mpi = mpi::measure(session, message, all, &share);
    let before = measured.layers.len();
    let found = mpi.found.into_iter().enumerate().map(|(at, found)| Found {
        what: format!("cores.layers[{}]", before + at),
        ..found
    });
    measured.found.extend(found);
    measured.curves.extend(mpi.curves);
    measured.layers.extend(mpi.layers);
    measured.notes.extend(mpi.notes);
    // A large last level takes long, and takes what is left: it comes last.
    let part = chase::measure(session, caches, line, all, deadline)?;
    measured.shared_by = measured.take(part);
    Ok(())
}

/// What remains where there are no pairs.
fn alone(mut measured: Measured, cores: Vec<u32>, caches: usize) -> Measured {
    let why = if cores.is_empty() {
        "the process may not choose its processors (sched_setaffinity is refused)"
    } else {
        "the process may use one processor"
    };
    measured.notes.push(format!(
        "{why}: shared caches, contention and communication were not measured; allow more, as with taskset or cpuset"
    ));
    let names = (0..caches).map(|at| format!("caches[{at}].shared_by"));
    let others = ["memory.contention", "cores.layers", "cores.tree"].map(str::to_owned);
    measured.found = names
        .chain(others)
        .map(|what| found(what, 0.0, why))
        .collect();
    measured.shared_by = vec![None; caches];
    measured.measured = cores;
    measured
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Held by tests that measure: they would disturb each other.
    pub(crate) fn quiet() -> std::sync::MutexGuard<'static, ()> {
        static QUIET: std::sync::Mutex<()> = std::sync::Mutex::new(());
        QUIET
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn caches() -> Vec<Cache> {
        let cache = |level, size_bytes, confidence| Cache {
            level,
            size_bytes,
            confidence,
            ..Cache::default()
        };
        vec![
            cache(1, 32 << 10, 0.9),
            cache(2, 512 << 10, 0.9),
            cache(3, 0, 0.0),
        ]
    }

    #[test]
    fn pairs_are_measured() {
        let _quiet = quiet();
        let session = Session::new(true, 30.0, &|_| {});
        let found = measure(&session, &caches(), 64).unwrap();
        assert_eq!(found.shared_by.len(), 3);
        assert_eq!(found.shared_by[2], None, "its size is not known");
        let how = |what: &str| found.found.iter().find(|f| f.what == what).unwrap();
        let unknown = how("caches[2].shared_by");
        if found.measured.len() > 1 {
            assert!(unknown.how.contains("not known"), "{unknown:?}");
            let tree = found.tree.as_ref().unwrap();
            assert_eq!(tree.cores, found.measured);
            assert!(tree.bytes_per_second > 0.0);
            let by_cores = found.layers.iter().filter(|l| l.by == "cores");
            let pairs: usize = by_cores.map(|l| l.pairs.len()).sum();
            let count = found.measured.len();
            assert_eq!(pairs, count * (count - 1) / 2, "{found:?}");
        }
        for found in &found.found {
            assert!((0.0..=1.0).contains(&found.confidence), "{found:?}");
        }
    }

    #[test]
    fn one_processor_is_named() {
        let _quiet = quiet();
        let session = Session::new(true, 30.0, &|_| {});
        let core = place::allowed()[0];
        let found = place::on(core, || measure(&session, &caches(), 64))
            .unwrap()
            .unwrap();
        assert_eq!(found.measured, [core]);
        assert!(
            found.notes.iter().any(|n| n.contains("one processor")),
            "{found:?}"
        );
        assert_eq!(found.shared_by, [None, None, None]);
        assert!(found.tree.is_none() && found.layers.is_empty());
        let bandwidth = place::on(core, || crate::bandwidth::measure(&session, &caches()));
        let bandwidth = bandwidth.unwrap().unwrap();
        assert!(bandwidth.bandwidths.iter().all(|b| b.cores == 1));
    }

    #[test]
    fn a_process_that_may_not_choose_is_named() {
        let found = alone(Measured::default(), Vec::new(), 2);
        assert!(found.notes[0].contains("sched_setaffinity"), "{found:?}");
        assert_eq!(found.shared_by, [None, None]);
        assert!(found.found.iter().all(|f| f.confidence == 0.0));
    }
}
