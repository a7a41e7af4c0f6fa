//! Time slot: how long a thread runs when others wait (BlackjackBench 3.6).

use super::probe::agreement_within;
use crate::document::curve;
use crate::session::Session;
use crate::{Error, place};
use cere_format::machine::Curve;

/// Nanoseconds from which a pause is recorded, as in the paper.
const THRESHOLD: f64 = 20_000.0;
/// Nanoseconds below which it is an interrupt.
const INTERRUPT: f64 = 200_000.0;
/// Bins of a doubling.
const BINS: f64 = 8.0;
/// Pauses below which nothing is said.
const FEW: usize = 8;

/// What was found.
pub struct Slot {
    /// Seconds; `None` if there were few pauses.
    pub seconds: Option<f64>,
    /// 0 to 1.
    pub confidence: f64,
    /// Runs by length.
    pub curve: Curve,
}

fn bin(pause: f64) -> i64 {
    (pause.log2() * BINS).round() as i64
}

/// The mode of pauses or runs in nanoseconds: the mean of those in the fullest bin and its neighbours, and their share of all. Bins are
/// logarithmic. Those of interrupts are left out; `None` if few are left.
#[must_use]
pub fn mode(pauses: &[f64]) -> Option<(f64, f64)> {
    let slots: Vec<f64> = pauses.iter().copied().filter(|p| *p >= INTERRUPT).collect();
    if slots.len() < FEW {
        return None;
    }
    let near = |center: i64| {
        slots
            .iter()
            .copied()
            .filter(move |p| (bin(*p) - center).abs() <= 1)
    };
    let fullest = slots
        .iter()
        .map(|p| bin(*p))
        .max_by_key(|b| (near(*b).count(), -b))?;
    let within: Vec<f64> = near(fullest).collect();
    let mean = within.iter().sum::<f64>() / within.len() as f64;
    Some((mean, within.len() as f64 / slots.len() as f64))
}

/// What a thread saw, in nanoseconds.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Pauses.
    pauses: Vec<f64>,
    /// Times between two pauses that are no interrupts.
    runs: Vec<f64>,
}

/// What the calling thread sees in the given time.
fn watch(session: &Session, seconds: f64) -> Seen {
    let start = cere_timing::clock::start();
    let (mut last, mut seen, mut resumed) = (start, Seen::default(), None);
    loop {
        let now = cere_timing::clock::start();
        let pause = session.nanoseconds(now.saturating_sub(last));
        if pause > THRESHOLD {
            seen.pauses.push(pause);
        }
        if pause > INTERRUPT {
            // The first run began before the thread looked.
            let run = resumed.map(|from| session.nanoseconds(last.saturating_sub(from)));
            seen.runs.extend(run);
            resumed = Some(now);
        }
        last = now;
        if session.nanoseconds(now.saturating_sub(start)) > seconds * 1e9 {
            return seen;
        }
    }
}

/// The slot in nanoseconds and a confidence. Pauses are the paper's way: as long as a slot if one other thread waits, longer with
/// more. What a thread runs between pauses is a slot whatever waits: it is the value where there are enough, and pauses confirm it.
fn read(seen: &[Seen]) -> Option<(f64, f64)> {
    let all = |of: fn(&Seen) -> &Vec<f64>| {
        seen.iter()
            .flat_map(|s| of(s).clone())
            .collect::<Vec<f64>>()
    };
    let runs = mode(&all(|s| &s.runs));
    let pauses = mode(&all(|s| &s.pauses));
    let Some(runs) = runs else {
        return pauses.map(|(slot, share)| (slot, 0.5 * share));
    };
    let same = pauses.map_or(0.0, |pauses| agreement_within(runs.0, pauses.0, 0.3));
    Some((runs.0, runs.1 * (0.7 + 0.3 * same)))
}

/// Two threads on each of `cores`, at most 16 of them: bound, so that each waits for the other alone.
pub fn measure(session: &Session, cores: &[u32]) -> Result<Slot, Error> {
    let seconds = session.pick(0.2, 0.45);
    let cores = &cores[..cores.len().min(16)];
    let seen = place::together(cores, |_, barrier| {
        barrier.wait();
        std::thread::scope(|scope| {
            // A thread is born where its parent may run.
            let other = std::thread::Builder::new().spawn_scoped(scope, || watch(session, seconds));
            let own = watch(session, seconds);
            let other = other.map_err(Error::Thread)?.join().unwrap_or_default();
            Ok([own, other])
        })
    })?;
    let seen = seen.into_iter().collect::<Result<Vec<_>, Error>>()?;
    let seen = seen.concat();
    let found = read(&seen);
    let mut bins = std::collections::BTreeMap::new();
    for run in seen.iter().flat_map(|s| &s.runs) {
        *bins.entry(bin(*run)).or_insert(0.0) += 1.0;
    }
    let length = |bin: i64| 2f64.powf(bin as f64 / BINS) / 1e6;
    let points = bins.into_iter().map(|(bin, count)| (length(bin), count));
    let mark = found.map(|f| (f.0 / 1e6, "time slot".to_owned()));
    let titles: [&str; 3] = [
        "Runs of a thread that shares its core with another",
        "milliseconds",
        "runs",
    ];
    Ok(Slot {
        seconds: found.map(|f| f.0 / 1e9),
        confidence: found.map_or(0.0, |f| f.1),
        curve: curve(titles, points.collect(), mark),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    #[test]
    fn slots_among_interrupts() {
        let mut random = SmallRng::seed_from_u64(9);
        for slot in [0.75e6, 3e6, 4e6, 100e6] {
            let mut list: Vec<f64> = (0..80)
                .map(|_| slot * (1.0 + random.random_range(-0.02..0.02)))
                .collect();
            list.extend((0..500).map(|_| random.random_range(20e3..150e3)));
            list.extend((0..20).map(|_| slot * random.random_range(0.3..3.0)));
            let (found, share) = mode(&list).unwrap();
            assert!((found / slot - 1.0).abs() < 0.05, "{found} {slot}");
            assert!(share > 0.75 && share < 0.95, "{share}");
        }
    }

    #[test]
    fn neighbours_lengthen_pauses_not_runs() {
        let seen = |pause: f64| Seen {
            pauses: vec![pause; 20],
            runs: vec![4e6; 20],
        };
        let (alone, sure) = read(&[seen(4e6)]).unwrap();
        let (disturbed, less) = read(&[seen(12e6)]).unwrap();
        assert_eq!((alone, disturbed), (4e6, 4e6));
        assert!(less < sure, "{less} {sure}");
        assert_eq!(read(&[Seen::default()]), None);
    }

    #[test]
    fn pauses_that_say_nothing() {
        assert_eq!(mode(&[3e6; 5]), None);
        assert_eq!(mode(&[50e3; 500]), None);
        let mut random = SmallRng::seed_from_u64(9);
        // A neighbour that comes and goes: no length is common.
        let list: Vec<f64> = (0..200)
            .map(|_| 1e6 * 2f64.powf(random.random_range(0.0..5.0)))
            .collect();
        assert!(mode(&list).unwrap().1 < 0.3);
    }
}
