//! Bandwidth from memory that cores take from each other (Servet, III.C).

use super::group::{Pair, contention};
use super::lockstep::{Typical, lockstep, nanoseconds};
use super::{Cores, cores, system};
use crate::Error;
use crate::area::{Area, Pages};
use crate::bandwidth::Deadline;
use crate::bandwidth::kernels::{Kernel, Shape};
use crate::bandwidth::plan::Spot;
use crate::bandwidth::window::{Runner, room};
use crate::session::Session;
use cere_format::machine::{Cache, Contention, Curve, Found};
use std::collections::HashMap;

/// Bytes that a second of touching and copying once takes, at the least.
const PACE: f64 = 2e9;

/// Bytes that each core copies in: twice the last level if free memory and time allow, and whether they do.
fn set(last: u64, free: u64, runs: usize, seconds: f64) -> (u64, bool) {
    let wanted = (2 * last).max(64 << 20);
    let allowed = (free / 8).min((PACE * seconds / runs.max(1) as f64) as u64);
    let set = wanted.min(allowed).max(16 << 20);
    (set, set >= wanted)
}

/// Nanoseconds of a copy window on each of `cores` at once.
fn copies(
    session: &Session,
    cores: &[u32],
    set: u64,
    deadline: &Deadline,
) -> Result<Vec<Option<Typical>>, Error> {
    let shape = Shape {
        bits: Shape::widths().into_iter().max().unwrap_or(128),
        unroll: 4,
        streams: 1,
    };
    let spot = Spot {
        level: 0,
        set,
        whole: true,
    };
    let spans = lockstep(cores, (4, session.pick(40, 100)), deadline, |_| {
        let area = Area::new(room(spot), Pages::Huge)?;
        // SAFETY: the area moves into the closure with the runner, and has room for the spot.
        let mut runner = unsafe { Runner::new(Kernel::Copy, shape, spot, area.address())? };
        let mut turn = 0;
        Ok(move || {
            let _held = &area;
            runner.run(&mut turn);
        })
    })?;
    Ok(nanoseconds(session, &spans))
}

/// Measures which pairs of cores take bandwidth from each other.
pub fn measure(
    session: &Session,
    caches: &[Cache],
    all: &Cores,
    deadline: &Deadline,
) -> Result<(Vec<Contention>, Vec<Found>, Vec<Curve>), Error> {
    session.step("bandwidth of pairs of cores");
    let sizes = caches
        .iter()
        .map(|c| c.size_bytes.max(c.system_bytes.unwrap_or(0)));
    let pairs = cores::pairs(&all.measured);
    let runs = all.measured.len() + 2 * pairs.len();
    let last = sizes.max().unwrap_or(0);
    let (set, whole) = set(last, system::free_memory(), runs, deadline.left());
    let (mut done, total) = (0, all.measured.len() + pairs.len());
    let mut run = |cores: &[u32]| {
        let share = deadline.part(1.0 / (total - done).max(1) as f64);
        done += 1;
        copies(session, cores, set, &share)
    };
    let mut alone = HashMap::new();
    for core in &all.measured {
        alone.insert(*core, run(&[*core])?[0]);
    }
    let mut table: Vec<(Pair, f64)> = Vec::new();
    let mut repeated: f64 = 1.0;
    for pair in &pairs {
        let both = run(&[pair.0, pair.1])?;
        let share = |core: u32, both: Option<Typical>| {
            let (alone, both) = (alone[&core]?, both?);
            repeated = repeated.min(alone.repeated).min(both.repeated);
            Some(alone.time / both.time)
        };
        let shares = [(pair.0, both[0]), (pair.1, both[1])].map({
            let mut share = share;
            move |(core, both)| share(core, both)
        });
        if let [Some(a), Some(b)] = shares {
            table.push((*pair, f64::midpoint(a, b)));
        }
    }
    // What `repeated` lacks is three times the spread.
    let noise = (1.0 - repeated) / 3.0;
    let groups = contention(&table, noise);
    let mut confidence = repeated * if whole { 1.0 } else { 0.5 };
    if table.len() < pairs.len() {
        confidence = 0.0;
    }
    let how = format!(
        "{} of {} pairs copied in {} MiB each, every core's rate over that alone; below {:.2} counts",
        table.len(),
        pairs.len(),
        set >> 20,
        1.0 - noise.max(0.05)
    );
    let name = |at: usize| format!("memory.contention[{at}]");
    let mut found: Vec<Found> = (0..groups.len())
        .map(|at| Found {
            what: name(at),
            confidence,
            how: how.clone(),
        })
        .collect();
    if groups.is_empty() {
        found.push(Found {
            what: "memory.contention".to_owned(),
            confidence,
            how: match table.len() == pairs.len() {
                true => format!("no pair takes bandwidth from each other: {how}"),
                false => format!("threads were stopped so often that few pairs ran at once: {how}"),
            },
        });
    }
    let points = table.iter().enumerate();
    let marks = table.iter().enumerate();
    let curve = Curve {
        name: "Copy bandwidth of a core in pairs".to_owned(),
        x: "pair".to_owned(),
        y: "bandwidth over that of a core alone".to_owned(),
        points: points.map(|(at, (_, share))| (at as f64, *share)).collect(),
        marks: marks
            .map(|(at, ((a, b), _))| (at as f64, format!("{a}-{b}")))
            .collect(),
    };
    Ok((groups, found, vec![curve]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_sets_are_bounded() {
        assert_eq!(set(32 << 20, 1 << 40, 3, 10.0), (64 << 20, true));
        assert_eq!(set(480 << 20, 1 << 40, 4, 2.1), (960 << 20, true));
        let (little, whole) = set(480 << 20, 1 << 30, 4, 2.0);
        assert!(little == 128 << 20 && !whole, "an eighth of free memory");
        assert!(
            set(480 << 20, 1 << 40, 200, 2.0).0 < 32 << 20,
            "little time"
        );
    }
}
