//! Execution contexts: how many threads compute without hindering each other (BlackjackBench 3.4).

use super::probe::{Chain, agreement_within};
use super::target::{Element, Kind, Target};
use crate::analysis::{first_step, monotone};
use crate::document::curve;
use crate::session::Session;
use crate::{Error, place};
use cere_arch::loops;
use cere_format::machine::Curve;
use cere_timing::area::{Area, Pages};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Streams of divisions: the divider is always busy, so that threads that share one hinder each other.
const STREAMS: usize = 6;
/// Bytes of a chase: well within any nearest cache, that of two threads as well.
const CHASED: usize = 8 << 10;
/// Nanoseconds of a thread's work: less than a time slot, so that some runs see no other program.
const WORK: f64 = 8e5;
/// Slowdown from which threads hinder each other.
const HINDERED: f64 = 1.15;
/// Slowdown at which no more threads are tried.
const ENOUGH: f64 = 2.4;

/// What threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Divisions of `f64`.
    Float,
    /// Divisions of `i64`.
    Integer,
    /// Dependent loads from the nearest cache.
    Memory,
}

impl Work {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Integer => "integer",
            Self::Memory => "memory",
        }
    }
}

/// Code that all threads run.
enum Load {
    Divide(Chain),
    Chase(Area),
}

impl Load {
    fn new(work: Work) -> Result<Self, Error> {
        let divide = |element| {
            let target = Target::new(Kind::Div, element, 64);
            Ok(Self::Divide(Chain::new(&[target], STREAMS, 4)?))
        };
        match work {
            Work::Float => divide(Element::F64),
            Work::Integer => divide(Element::I64),
            Work::Memory => Self::chase(),
        }
    }

    fn chase() -> Result<Self, Error> {
        let mut area = Area::new(CHASED, Pages::Plain)?;
        let (start, lines) = (area.address(), CHASED / 64);
        for line in 0..lines {
            // All lines in turns, by a step that no stride prefetcher gains from in so near a cache.
            area.words()[line * 8] = start + ((line + 37) % lines * 64) as u64;
        }
        Ok(Self::Chase(area))
    }

    fn run(&self, rounds: u64) {
        match self {
            Self::Divide(chain) => chain.run(rounds),
            // SAFETY: each word that is read holds the address of another.
            Self::Chase(area) => unsafe {
                std::hint::black_box(loops::chase::<32>(area.address(), rounds));
            },
        }
    }
}

/// Seconds from the moment when all of `threads` are there until the last is done.
fn once(load: &Load, threads: usize, rounds: u64) -> Result<f64, Error> {
    let arrived = AtomicUsize::new(0);
    let one = || {
        arrived.fetch_add(1, Ordering::AcqRel);
        while arrived.load(Ordering::Acquire) < threads {
            std::thread::yield_now();
        }
        let from = Instant::now();
        load.run(rounds);
        (from, Instant::now())
    };
    std::thread::scope(|scope| {
        let mut started = Vec::with_capacity(threads);
        for _ in 0..threads {
            match std::thread::Builder::new().spawn_scoped(scope, one) {
                Ok(thread) => started.push(thread),
                Err(error) => {
                    // Those that wait go on.
                    arrived.fetch_add(threads, Ordering::AcqRel);
                    return Err(Error::Thread(error));
                }
            }
        }
        let spans: Vec<_> = started.into_iter().filter_map(|t| t.join().ok()).collect();
        let from = spans.iter().map(|s| s.0).min();
        let to = spans.iter().map(|s| s.1).max();
        let span = from.zip(to).map(|(from, to)| (to - from).as_secs_f64());
        span.ok_or_else(|| Error::Thread(std::io::Error::other("a thread of a probe panicked")))
    })
}

/// Numbers of threads that are tried on `cores`: all up to three times of few cores; about 24 of many.
#[must_use]
pub fn counts(cores: usize) -> Vec<usize> {
    let step = cores.div_ceil(10).max(1);
    let mut counts = vec![1];
    counts.extend(
        (1..)
            .map(|i| i * step)
            .take_while(|n| *n <= 5 * cores / 2 + 1),
    );
    counts.extend([cores, cores + 1]);
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// What was found.
pub struct Contexts {
    /// Threads that do not hinder each other; `None` if no number of threads hindered.
    pub threads: Option<u32>,
    /// 0 to 1.
    pub confidence: f64,
    /// Slowdown by threads.
    pub curve: Curve,
}

fn least_of(a: &[(f64, f64)], b: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let both = a.iter().zip(b);
    both.map(|(a, b)| (a.0, a.1.min(b.1))).collect()
}

/// Noise taken off. What is slower than enough is as good as any: a disturbed last point would raise the mean of the steps.
fn clean(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let clipped: Vec<_> = points.iter().map(|p| (p.0, p.1.min(ENOUGH))).collect();
    monotone(&clipped)
}

/// Threads that do not hinder each other, of curves of the slowdown by threads: the first step above the mean
/// (BlackjackBench 4.2.1), with its clearness and how well the curves of two halves of the runs agree.
#[must_use]
pub fn read(halves: [&[(f64, f64)]; 2]) -> Option<(usize, f64)> {
    let both = clean(&least_of(halves[0], halves[1]));
    let step = first_step(&both)?;
    let (before, after) = (both[step.before].1, both[step.before + 1].1);
    // A whole thread more than contexts: a slowdown that noise explains is none.
    if after < HINDERED * before {
        return None;
    }
    let same = halves.map(|half| first_step(&clean(half)).map(|s| s.before) == Some(step.before));
    let agree = same.iter().filter(|same| **same).count() as f64 / 2.0;
    // With no hindrance the last thread without one takes as long as the first.
    let flat = agreement_within(both[0].1, before, 0.5);
    // Short work of one thread too many takes twice as long.
    let high = ((after / before - 1.0) / 0.8).min(1.0);
    Some((
        step.before,
        step.clearness() * flat * high * (0.3 + 0.7 * agree),
    ))
}

/// Slowdowns by threads, of the even and of the odd sweeps. Sweeps over all numbers of threads: another program that keeps a
/// processor for some time then disturbs all of them.
fn sweep(
    session: &Session,
    load: &Load,
    rounds: u64,
    cores: usize,
    until: f64,
) -> Result<[Vec<(f64, f64)>; 2], Error> {
    let counts = counts(cores);
    let mut least = vec![[f64::INFINITY; 2]; counts.len()];
    let best = |times: [f64; 2]| times[0].min(times[1]);
    for sweep in 0..session.pick(12, 40) {
        for (at, threads) in counts.iter().enumerate() {
            let half = &mut least[at][sweep % 2];
            *half = once(load, *threads, rounds)?.min(*half);
            if best(least[at]) > ENOUGH * best(least[0]) {
                break;
            }
        }
        if sweep > 1 && (session.left() == 0.0 || session.elapsed() > until) {
            break;
        }
    }
    let alone = best(least[0]);
    let last = least.iter().position(|times| best(*times) > ENOUGH * alone);
    let kept = last.map_or(counts.len(), |at| at + 1);
    let curve = |half: usize| {
        let times = least.iter().map(|times| {
            let time = times[half];
            if time.is_finite() { time } else { best(*times) }
        });
        let points = counts.iter().zip(times).take(kept);
        points.map(|(n, time)| (*n as f64, time / alone)).collect()
    };
    Ok([curve(0), curve(1)])
}

/// The least slowdown of a thread when each of `cores` has one that is bound to it.
fn bound(session: &Session, load: &Load, rounds: u64, cores: &[u32]) -> Result<f64, Error> {
    let runs = session.pick(6, 20);
    let times = |cores: &[u32]| {
        place::together(cores, |_, barrier| {
            let run = |_| {
                barrier.wait();
                session.time(|| load.run(rounds))
            };
            (0..runs).map(run).collect::<Vec<f64>>()
        })
    };
    let slowest = |all: &[Vec<f64>]| {
        let of = |run: usize| all.iter().map(|times| times[run]).fold(0.0, f64::max);
        (0..runs).map(of).fold(f64::INFINITY, f64::min)
    };
    let alone = slowest(&times(&cores[..1])?);
    Ok(slowest(&times(cores)?) / alone)
}

/// Runs more and more threads, bound to none of `cores`. Ends early at `until`, by [`Session::elapsed`].
pub fn measure(
    session: &Session,
    work: Work,
    cores: &[u32],
    until: f64,
) -> Result<Contexts, Error> {
    let load = Load::new(work)?;
    load.run(100);
    let few = session.least(3, || load.run(1000)) / 1000.0;
    let rounds = (WORK / few.max(0.1)) as u64;
    let halves = sweep(session, &load, rounds, cores.len(), until)?;
    // More than there are processors is a disturbance of fewer.
    let possible = |found: &(usize, f64)| halves[0][found.0].0 <= cores.len() as f64;
    let found = read([&halves[0], &halves[1]]).filter(possible);
    let points: Vec<(f64, f64)> = least_of(&halves[0], &halves[1]);
    let threads = found.map(|(at, _)| points[at].0 as u32);
    let mut confidence = found.map_or(0.0, |f| f.1);
    if let (Some(threads), true) = (threads, cores.len() > 1) {
        // Bound threads are another way: what they say of all cores must be the same.
        let free = bound(session, &load, rounds, cores)? < HINDERED;
        if free != (threads as usize >= cores.len()) {
            confidence *= 0.3;
        }
    }
    let name = format!("Threads that do not hinder each other: {}", work.name());
    let mark = threads.map(|n| (f64::from(n), "contexts".to_owned()));
    Ok(Contexts {
        threads,
        confidence,
        curve: curve([&name, "threads", "time, of one thread's"], points, mark),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    fn modelled(contexts: usize, shared: bool, random: &mut SmallRng) -> Vec<(f64, f64)> {
        let slow = |threads: usize| {
            if shared {
                // The system moves threads about: they share the loss.
                f64::max(1.0, threads as f64 / contexts as f64)
            } else {
                threads.div_ceil(contexts) as f64
            }
        };
        let counts = counts(contexts);
        counts
            .iter()
            .map(|n| (*n as f64, slow(*n) * (1.0 + random.random_range(0.0..0.02))))
            .collect()
    }

    #[test]
    fn steps_of_modelled_machines() {
        let mut random = SmallRng::seed_from_u64(3);
        for contexts in [1, 2, 4, 6, 16, 64, 128] {
            for _ in 0..20 {
                let halves = [0, 1].map(|_| modelled(contexts, false, &mut random));
                let (at, confidence) = read([&halves[0], &halves[1]]).unwrap();
                assert_eq!(halves[0][at].0, contexts as f64, "{halves:?}");
                assert!(confidence > 0.8, "{confidence} {halves:?}");
            }
        }
        for contexts in [2, 4] {
            let halves = [0, 1].map(|_| modelled(contexts, true, &mut random));
            let (at, _) = read([&halves[0], &halves[1]]).unwrap();
            assert_eq!(halves[0][at].0, contexts as f64);
        }
    }

    #[test]
    fn no_step_and_disturbed_steps() {
        let flat: Vec<_> = (1..7)
            .map(|n| (f64::from(n), 1.0 + 0.001 * f64::from(n)))
            .collect();
        assert_eq!(read([&flat, &flat]), None);
        // A neighbour on one of two cores: two threads hinder each other by a third.
        let disturbed = [(1.0, 1.0), (2.0, 1.35), (3.0, 1.6), (4.0, 2.1)];
        let (_, confidence) = read([&disturbed, &disturbed]).unwrap();
        let late = [(1.0, 1.0), (2.0, 2.02), (3.0, 5.94)];
        assert_eq!(read([&late, &late]).unwrap().0, 0);
        let clear = [(1.0, 1.0), (2.0, 1.01), (3.0, 1.98), (4.0, 2.1)];
        let (at, sure) = read([&clear, &clear]).unwrap();
        assert_eq!(clear[at].0, 2.0);
        assert!(confidence < sure, "{confidence} {sure}");
    }

    #[test]
    fn numbers_of_threads() {
        assert_eq!(counts(1), [1, 2, 3]);
        assert_eq!(counts(2), [1, 2, 3, 4, 5, 6]);
        let many = counts(128);
        assert!(
            many.len() < 40 && many.contains(&128) && many.contains(&129),
            "{many:?}"
        );
    }
}
