//! Bandwidth from memory that cores take from each other (Servet, III.C).

use super::cores;
use super::group::{Pair, contention};
use super::lockstep::{Span, lockstep, valid};
use super::part::{Cores, Part};
use crate::Error;
use crate::bandwidth::Deadline;
use crate::bandwidth::kernels::{Kernel, Shape};
use crate::bandwidth::plan::Spot;
use crate::bandwidth::window::{Runner, area};
use crate::document::{self, by_pair};
use crate::session::Session;
use crate::system;
use cere_format::machine::{Cache, Contention, Found};
use cere_timing::stats::median;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that a second of touching and copying once takes, at the least.
const PACE: f64 = 8e9;

/// Bytes that each core copies in: twice the last level if free memory and time allow, and whether they do.
fn set(last: u64, free: u64, runs: usize, seconds: f64) -> (u64, bool) {
    let wanted = (2 * last).max(64 << 20);
    let allowed = (free / 8).min((PACE * seconds / runs.max(1) as f64) as u64);
    let set = wanted.min(allowed).max(16 << 20);
    (set, set >= wanted)
}

/// Windows of a pair: the first core alone, the second alone, both.
const TURNS: usize = 3;

/// Spans of copy windows of a pair in turns, and whether both had their whole arrays. Only neighbours in time are compared: what others
/// take of the memory changes.
fn copies(
    session: &Session,
    pair: Pair,
    set: u64,
    deadline: &Deadline,
) -> Result<(Vec<Vec<Span>>, bool), Error> {
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
    let (share, whole) = (deadline.part(0.75), AtomicBool::new(true));
    let rounds = TURNS * session.pick(100, 400);
    let spans = lockstep(&[pair.0, pair.1], (TURNS, rounds), deadline, |index| {
        let (area, fits) = area(spot, &share)?;
        whole.fetch_and(fits.whole, Ordering::Relaxed);
        // SAFETY: the area moves into the closure with the runner, and has room for the spot.
        let mut runner = unsafe { Runner::new(Kernel::Copy, shape, fits, area.address())? };
        let mut turn = 0;
        Ok(move |round| {
            let _held = &area;
            if [index, 2].contains(&(round % TURNS)) {
                runner.run(&mut turn);
            }
        })
    })?;
    Ok((spans, whole.into_inner()))
}

/// Rates of cores in a pair over those alone, of each three rounds in which nothing was stopped.
fn shares(spans: &[Vec<Span>]) -> Vec<f64> {
    let [one, other] = spans else {
        return Vec::new();
    };
    let triples = one.chunks_exact(TURNS).zip(other.chunks_exact(TURNS));
    let share = |(one, other): (&[Span], &[Span])| {
        let both = valid(&[vec![one[2]], vec![other[2]]]).pop()?;
        let of = |alone: Span, both: u64| {
            let ticks = alone.to.saturating_sub(alone.from);
            alone.whole.then(|| ticks as f64 / both.max(1) as f64)
        };
        Some(f64::midpoint(of(one[0], both[0])?, of(other[1], both[1])?))
    };
    triples.filter_map(share).collect()
}

/// The median, and how far the medians of the four quarters of the time are apart, over it; `None` of fewer than 8.
fn agreed(shares: &[f64]) -> Option<(f64, f64)> {
    let quarters = shares.chunks(shares.len().div_ceil(4).max(1));
    let quarters: Vec<f64> = quarters.filter_map(median).collect();
    let whole = median(shares).unwrap_or(0.0);
    let high = quarters.iter().copied().fold(0.0, f64::max);
    let low = quarters.iter().copied().fold(f64::INFINITY, f64::min);
    (shares.len() >= 8).then(|| (whole, (high - low) / whole))
}

/// Measures which pairs of cores take bandwidth from each other.
pub fn measure(
    session: &Session,
    caches: &[Cache],
    all: &Cores,
    deadline: &Deadline,
) -> Result<Part<Vec<Contention>>, Error> {
    session.step("bandwidth of pairs of cores");
    let sizes = caches
        .iter()
        .map(|c| c.size_bytes.max(c.system_bytes.unwrap_or(0)));
    let pairs = cores::pairs(&all.measured);
    let last = sizes.max().unwrap_or(0);
    let (set, mut whole) = set(
        last,
        system::free_memory(),
        2 * pairs.len(),
        deadline.left(),
    );
    let (mut table, mut noise) = (Vec::new(), 0.0f64);
    for (at, pair) in pairs.iter().enumerate() {
        let share = deadline.part(1.0 / (pairs.len() - at) as f64);
        let (spans, touched) = copies(session, *pair, set, &share)?;
        whole &= touched;
        if let Some((share, apart)) = agreed(&shares(&spans)) {
            table.push((*pair, share));
            noise = noise.max(apart);
        }
    }
    let groups = contention(&table, noise);
    let mut confidence = (1.0 - 3.0 * noise).clamp(0.0, 1.0);
    // A part of the arrays may have stayed in a cache.
    confidence *= if whole { 1.0 } else { 0.5 };
    if table.len() < pairs.len() {
        confidence = 0.0;
    }
    let how = format!(
        "{} of {} pairs copied in {} MiB each{}, in turns with each core alone; a rate below {:.2} of that alone counts",
        table.len(),
        pairs.len(),
        set >> 20,
        if whole {
            ""
        } else {
            " or less, as touching them took too long: a part may have stayed in a cache"
        },
        1.0 - noise.max(0.05)
    );
    Ok(Part {
        found: found(&groups, confidence, &how, table.len() == pairs.len()),
        curves: vec![by_pair(
            "Copy bandwidth of a core in pairs",
            "bandwidth over that of a core alone",
            table.iter().copied(),
        )],
        value: groups,
    })
}

fn found(groups: &[Contention], confidence: f64, how: &str, all: bool) -> Vec<Found> {
    if groups.is_empty() {
        let how = match all {
            true => format!("no pair takes bandwidth from each other: {how}"),
            false => format!("threads were stopped so often that few pairs ran at once: {how}"),
        };
        return vec![document::found("memory.contention", confidence, how)];
    }
    let names = (0..groups.len()).map(|at| format!("memory.contention[{at}]"));
    names
        .map(|name| document::found(name, confidence, how))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_sets_are_bounded() {
        assert_eq!(set(32 << 20, 1 << 40, 3, 10.0), (64 << 20, true));
        assert_eq!(set(480 << 20, 1 << 40, 4, 0.6), (960 << 20, true));
        let (little, whole) = set(480 << 20, 1 << 30, 4, 2.0);
        assert!(little == 128 << 20 && !whole, "an eighth of free memory");
        assert!(
            set(480 << 20, 1 << 40, 800, 2.0).0 < 32 << 20,
            "little time"
        );
    }

    #[test]
    fn a_share_is_of_neighbours_in_time() {
        // Each pair of windows takes twice as long as alone, while all become slower and slower.
        let (mut one, mut other, mut at) = (Vec::new(), Vec::new(), 0);
        for turn in 0..40u64 {
            for role in 0..3 {
                let ticks = (100 + 10 * turn) * if role == 2 { 2 } else { 1 };
                let run = |runs: bool| Span {
                    from: at,
                    to: if runs { at + ticks } else { at },
                    whole: true,
                };
                one.push(run(role != 1));
                other.push(run(role != 0));
                at += ticks;
            }
        }
        let found = shares(&[one.clone(), other.clone()]);
        assert_eq!(found, [0.5; 40]);
        assert_eq!(agreed(&found), Some((0.5, 0.0)));
        // A program that comes in the middle and takes bandwidth from the pairs alone is seen.
        let (_, apart) = agreed(&[vec![0.9; 20], vec![0.6; 20]].concat()).unwrap();
        assert!(apart > 0.3);
        one[2].whole = false;
        assert_eq!(shares(&[one, other]).len(), 39);
        assert_eq!(agreed(&[0.5; 7]), None);
    }
}
