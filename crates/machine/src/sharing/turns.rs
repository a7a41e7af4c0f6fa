//! Blocks that two cores increment in turns (BlackjackBench 3.1.4).

use super::cores;
use super::lockstep::{lockstep, typical, valid};
use super::part::{Cores, Part};
use super::talk::Turns;
use super::tree::{Table, tree};
use crate::Error;
use crate::bandwidth::Deadline;
use crate::document::{curve, found};
use crate::session::Session;
use cere_arch::loops::increment;
use cere_format::machine::{Cache, Curve, Locality};
use cere_timing::area::{Area, Pages};
use std::sync::OnceLock;

/// Nanoseconds of a line that comes from another core, at the most, to choose sizes.
const FAR: f64 = 150.0;
/// Times that each thread increments a block of most sizes, with those that warm up.
const PASSES: f64 = 24.0;

/// Sizes of blocks: from a quarter of the nearest cache, by factors of four, beyond the last level if `seconds` for each pair allow.
fn sizes(caches: &[Cache], line: u64, seconds: f64) -> Vec<u64> {
    let known = caches.iter().map(|c| c.size_bytes).filter(|s| *s > 0);
    let first = known.clone().min().unwrap_or(32 << 10) / 4;
    let last = known.max().unwrap_or(32 << 20);
    let mut found = vec![first.max(4096)];
    let cost = |bytes: u64| (bytes / line.max(1)) as f64 * FAR * 1e-9 * PASSES;
    let mut spent = cost(found[0]);
    while let Some(size) = found.last().filter(|s| **s <= last).map(|s| 4 * s) {
        spent += cost(size);
        if spent > seconds {
            break;
        }
        found.push(size);
    }
    found
}

/// Bytes per second of a block between two cores, the first of which touched it first; `None` where threads were stopped too often. The
/// second value is how often each line was incremented.
fn block(
    session: &Session,
    pair: (u32, u32),
    bytes: u64,
    line: u64,
    deadline: &Deadline,
) -> Result<(Option<super::lockstep::Typical>, u64), Error> {
    let (turns, area) = (Turns::new(), OnceLock::new());
    let lines = (bytes / line.max(8)).max(1);
    let rounds = (2048 / lines).max(1);
    let spans = lockstep(
        &[pair.0, pair.1],
        (2, session.pick(6, 10)),
        deadline,
        |index| {
            if index == 0 {
                let fresh = Area::new((lines * line.max(8)) as usize, Pages::Huge)?;
                // Nobody else sets it.
                let _ = area.set(fresh);
            }
            let (turns, area) = (&turns, &area);
            let mut before = 0;
            Ok(move |_| {
                // All threads have met since it was set.
                let base = area.get().map_or(0, Area::address);
                turns.take(index as u64, before, rounds, || {
                    // SAFETY: the area has all lines; the turns order all use of it.
                    unsafe { increment(base, lines, line.max(8)) };
                });
                before += rounds;
            })
        },
    )?;
    let moved = (2 * rounds * lines * line.max(8)) as f64;
    let times = valid(&spans).into_iter();
    let rates = times.map(|t| session.nanoseconds(t[0]) * 1e-9 / moved);
    let count = area.into_inner().map_or(0, |mut area| area.words()[0]);
    Ok((typical(rates.collect()), count))
}

/// Measures the tree of locality.
pub fn measure(
    session: &Session,
    caches: &[Cache],
    line: u64,
    all: &Cores,
    deadline: &Deadline,
) -> Result<Part<Option<Locality>>, Error> {
    session.step("blocks that cores increment in turns");
    let pairs = cores::pairs(&all.measured);
    let sizes = sizes(caches, line, deadline.left() / pairs.len().max(1) as f64);
    let mut tables = Vec::new();
    let (mut repeated, mut missing) = (Vec::new(), 0);
    let mut left = sizes.len() * pairs.len();
    for size in &sizes {
        let mut table = Table {
            block: *size,
            pairs: Vec::new(),
        };
        for pair in &pairs {
            let share = deadline.part(1.0 / left.max(1) as f64);
            left -= 1;
            match block(session, *pair, *size, line, &share)?.0 {
                Some(one) => {
                    table.pairs.push((*pair, 1.0 / one.time));
                    repeated.push(one.repeated);
                }
                None => missing += 1,
            }
        }
        tables.push(table);
    }
    let tree = tree(&all.measured, &tables);
    let mut confidence = repeated.iter().sum::<f64>() / repeated.len().max(1) as f64;
    let mut how = format!(
        "blocks of {} to {} bytes incremented in turns by two cores",
        sizes.first().unwrap_or(&0),
        sizes.last().unwrap_or(&0)
    );
    if missing > 0 {
        how += "; threads of some pairs were stopped too often";
        confidence *= 0.5;
    }
    Ok(Part {
        value: tree,
        found: vec![found("cores.tree", confidence, how)],
        curves: curves(&tables),
    })
}

/// Bandwidth by block of the pairs of the first core.
fn curves(tables: &[Table]) -> Vec<Curve> {
    let Some(first) = tables.first().and_then(|t| t.pairs.first()) else {
        return Vec::new();
    };
    let core = first.0.0;
    let others = tables[0].pairs.iter().filter(|((a, _), _)| *a == core);
    let of_pair = |pair: (u32, u32)| {
        let rate = |table: &Table| {
            let found = table.pairs.iter().find(|(p, _)| *p == pair)?;
            Some((table.block as f64, found.1))
        };
        let name = format!(
            "Blocks incremented in turns by cores {} and {}",
            pair.0, pair.1
        );
        let titles: [&str; 3] = [&name, "bytes of the block", "bytes per second"];
        curve(titles, tables.iter().filter_map(rate).collect(), None)
    };
    others.map(|(pair, _)| of_pair(*pair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(size_bytes: u64) -> Cache {
        Cache {
            size_bytes,
            ..Cache::default()
        }
    }

    #[test]
    fn sizes_reach_beyond_the_last_level_if_time_allows() {
        let caches = [cache(32 << 10), cache(512 << 10), cache(8 << 20)];
        let all = sizes(&caches, 64, 100.0);
        assert_eq!(all[0], 8 << 10);
        assert!(*all.last().unwrap() > 8 << 20, "{all:?}");
        assert!(*sizes(&caches, 64, 0.1).last().unwrap() < 8 << 20);
        assert_eq!(sizes(&[], 64, 0.0), [8 << 10]);
    }

    #[test]
    fn every_line_is_incremented_by_both() {
        let mut area = Area::new(4096, Pages::Small).unwrap();
        // SAFETY: 32 lines of 64 bytes in an area of a page.
        unsafe { increment(area.address(), 32, 64) };
        let words = area.words();
        assert!((0..64).all(|at| words[at * 8] == u64::from(at < 32)));
        assert_eq!(words.iter().sum::<u64>(), 32);
        let cores = crate::place::allowed();
        if let [a, b, ..] = cores[..] {
            let session = Session::new(true, 5.0, &|_| {});
            let deadline = Deadline::within(&session, 1.0);
            let (_, count) = block(&session, (a, b), 4096, 64, &deadline).unwrap();
            // 32 rounds of both in each of eight windows, fewer if time was over.
            assert!(count >= 2 * 32 * 5 && count % 64 == 0, "{count}");
        }
    }
}
