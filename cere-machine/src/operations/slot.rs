//! Time slot: how long a thread runs when others wait (BlackjackBench 3.6).

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
    /// Pauses by length.
    pub curve: Curve,
}

fn bin(pause: f64) -> i64 {
    (pause.log2() * BINS).round() as i64
}

/// The mode of pauses in nanoseconds: the mean of those in the fullest bin and its neighbours, and their share of all. Bins are
/// logarithmic. Pauses of interrupts are left out; `None` if few are left.
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

/// Pauses of the calling thread in the given time, in nanoseconds.
fn pauses(session: &Session, seconds: f64) -> Vec<f64> {
    let start = cere_clock::start();
    let (mut last, mut found) = (start, Vec::new());
    loop {
        let now = cere_clock::start();
        let pause = session.nanoseconds(now.saturating_sub(last));
        if pause > THRESHOLD {
            found.push(pause);
        }
        last = now;
        if session.nanoseconds(now.saturating_sub(start)) > seconds * 1e9 {
            return found;
        }
    }
}

/// Two threads on each of `cores`, at most 16 of them: bound, so that each waits for the other alone.
pub fn measure(session: &Session, cores: &[u32]) -> Result<Slot, Error> {
    let seconds = session.pick(0.2, 0.45);
    let cores = &cores[..cores.len().min(16)];
    let lists = place::together(cores, |index, barrier| {
        barrier.wait();
        std::thread::scope(|scope| {
            // A thread is born where its parent may run.
            let other =
                std::thread::Builder::new().spawn_scoped(scope, || pauses(session, seconds));
            let own = pauses(session, seconds);
            let other = other.map_err(Error::Thread)?.join().unwrap_or_default();
            Ok((index, [own, other].concat()))
        })
    })?;
    let lists = lists.into_iter().collect::<Result<Vec<_>, Error>>()?;
    let all: Vec<f64> = lists.into_iter().flat_map(|(_, pauses)| pauses).collect();
    let found = mode(&all);
    let mut bins = std::collections::BTreeMap::new();
    for pause in &all {
        *bins.entry(bin(*pause)).or_insert(0.0) += 1.0;
    }
    let length = |bin: i64| 2f64.powf(bin as f64 / BINS) / 1e6;
    Ok(Slot {
        seconds: found.map(|f| f.0 / 1e9),
        confidence: found.map_or(0.0, |f| f.1),
        curve: Curve {
            name: "Pauses of a thread that shares its core with another".to_owned(),
            x: "milliseconds".to_owned(),
            y: "pauses".to_owned(),
            points: bins
                .into_iter()
                .map(|(bin, count)| (length(bin), count))
                .collect(),
            marks: found
                .map(|f| (f.0 / 1e6, "time slot".to_owned()))
                .into_iter()
                .collect(),
        },
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
