//! Which cores have a cache together (Servet, III.B).

use super::cores;
use super::group::{Duel, Pair, Unknown, shared};
use super::lockstep::{Typical, lockstep, nanoseconds};
use super::part::{Cores, Groups, Part};
use crate::Error;
use crate::bandwidth::Deadline;
use crate::document::{self, by_pair};
use crate::session::Session;
use cere_arch::loops;
use cere_format::machine::{Cache, USABLE};
use cere_timing::area::{Area, Pages};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Loads of the chase in an iteration.
const UNROLL: usize = 64;
/// Loads of a window: a larger array is gone through in several. Short, so that few are interrupted.
const WINDOW: u64 = 1 << 12;
/// Bytes of a level from which on one core stands for all in the references.
const LARGE: u64 = 32 << 20;
/// Nanoseconds of a load beyond a cache, to tell beforehand what takes too long.
const FAR: f64 = 100.0;

/// A chase through all lines of an array: pages in random order, in each its lines in random order.
pub struct Chase {
    /// Held for the chase.
    _area: Area,
    at: u64,
}

impl Chase {
    /// Of `bytes`, with a load for each `line` bytes.
    pub fn new(bytes: u64, line: u64) -> Result<Self, Error> {
        let line = line.max(8).next_power_of_two();
        let mut area = Area::new(bytes as usize, Pages::Huge)?;
        let base = area.address();
        let words = area.words();
        let (mut first, mut last) = (None, 0);
        for_each(bytes.max(line) / line, 4096 / line.min(4096), |place| {
            let place = place * line;
            match first {
                None => first = Some(place),
                Some(_) => words[last as usize / 8] = base + place,
            }
            last = place;
        });
        let at = base + first.unwrap_or(0);
        words[last as usize / 8] = at;
        Ok(Self { _area: area, at })
    }

    /// Goes on for `loads`, a multiple of [`UNROLL`].
    pub fn run(&mut self, loads: u64) {
        let rounds = loads / UNROLL as u64;
        // SAFETY: the chain of `new` never leaves the area.
        self.at = unsafe { loops::chase::<UNROLL>(self.at, rounds) };
    }
}

/// Visits all numbers below `lines`: pages of `page` in random order, each shuffled.
fn for_each(lines: u64, page: u64, mut visit: impl FnMut(u64)) {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let mut shuffle = move |all: &mut [u64]| {
        for at in (1..all.len()).rev() {
            all.swap(at, random(at + 1));
        }
    };
    let mut pages: Vec<u64> = (0..lines.div_ceil(page)).collect();
    shuffle(&mut pages);
    let mut within = Vec::new();
    for number in pages {
        within.clear();
        within.extend(number * page..((number + 1) * page).min(lines));
        shuffle(&mut within);
        within.iter().copied().for_each(&mut visit);
    }
}

/// Nanoseconds of a load on each of `cores` at once, in arrays of `bytes` each.
fn loads(
    session: &Session,
    cores: &[u32],
    bytes: u64,
    line: u64,
    deadline: &Deadline,
) -> Result<Vec<Option<Typical>>, Error> {
    let lines = (bytes / line.max(1)).max(1);
    // Once and a half through it, together: then the caches are as the cores leave each other's.
    let warm = (3 * lines / 2).div_ceil(WINDOW) as usize;
    let spans = lockstep(cores, (warm, session.pick(24, 64)), deadline, |_| {
        let mut chase = Chase::new(bytes, line)?;
        Ok(move |_| chase.run(WINDOW))
    })?;
    let mut found = nanoseconds(session, &spans);
    for one in found.iter_mut().flatten() {
        one.time /= WINDOW as f64;
    }
    Ok(found)
}

/// Seconds that a level takes at most.
fn seconds(bytes: u64, line: u64, cores: usize, pairs: usize) -> f64 {
    let lines = (bytes / line.max(1)) as f64;
    // Of 2/3 alone, of 4/3 alone, and both: each once and a half through, and the chain written.
    let alone = if bytes > LARGE { 1 } else { cores };
    lines * FAR * 1e-9 * 1.7 * (2.0 * alone as f64 + 2.0 / 3.0 * pairs as f64)
}

/// Measures who has each of `caches`; `None`, with a reason, where that cannot be observed or takes too long.
pub fn measure(
    session: &Session,
    caches: &[Cache],
    line: u64,
    all: &Cores,
    deadline: &Deadline,
) -> Result<Part<Vec<Groups>>, Error> {
    let (mut groups, mut found, mut curves) = (Vec::new(), Vec::new(), Vec::new());
    let pairs = cores::pairs(&all.measured);
    let control = match caches.first().filter(|c| c.size_bytes > 0) {
        Some(nearest) => controls(session, &pairs, nearest.size_bytes / 8, line, deadline)?,
        None => HashMap::new(),
    };
    for (at, cache) in caches.iter().enumerate() {
        session.step(&format!("who shares cache level {}", cache.level));
        let needed = seconds(cache.size_bytes, line, all.measured.len(), pairs.len());
        let outcome = if cache.size_bytes == 0 || cache.confidence < USABLE {
            Err(Unknown::Size)
        } else if needed > deadline.left() {
            Err(Unknown::TooLong(needed, deadline.left()))
        } else {
            let share = deadline.part(1.0 / (caches.len() - at) as f64);
            let duels = duels(
                session,
                cache.size_bytes,
                line,
                all,
                &pairs,
                &control,
                &share,
            )?;
            curves.push(by_pair(
                &format!("Pairs of cores in cache level {}", cache.level),
                "0: as one core with one array; 1: as one core with both",
                duels.iter().map(|d| (d.pair, d.position())),
            ));
            match duels.len() == pairs.len() {
                true => shared(&all.measured, &duels),
                false => Err(Unknown::Unfinished),
            }
        };
        let (value, confidence, how) = match outcome {
            Ok((groups, confidence)) => (
                Some(groups),
                confidence,
                "pairs of cores chase through 2/3 of the level each: nearer to one core with both arrays than to one with one"
                    .to_owned(),
            ),
            Err(why) => (None, 0.0, why.to_string()),
        };
        groups.push(value);
        let what = format!("caches[{at}].shared_by");
        found.push(document::found(what, confidence, how));
    }
    Ok(Part {
        value: groups,
        found,
        curves,
    })
}

/// How much two cores slow each other down in arrays that fit the nearest cache together: what is not sharing of caches.
fn controls(
    session: &Session,
    pairs: &[Pair],
    bytes: u64,
    line: u64,
    deadline: &Deadline,
) -> Result<HashMap<Pair, f64>, Error> {
    let mut found = HashMap::new();
    let share = deadline.part(0.2);
    let mut alone = HashMap::new();
    for (at, pair) in pairs.iter().enumerate() {
        let share = share.part(1.0 / (pairs.len() - at) as f64);
        for core in [pair.0, pair.1] {
            if let Entry::Vacant(entry) = alone.entry(core) {
                entry.insert(loads(session, &[core], bytes, line, &share)?[0]);
            }
        }
        let both = loads(session, &[pair.0, pair.1], bytes, line, &share)?;
        let ratio = |core: u32, both: Option<Typical>| Some(both?.time / alone[&core]?.time);
        let ratios = [ratio(pair.0, both[0]), ratio(pair.1, both[1])];
        let ratio = ratios.into_iter().flatten().fold(1.0, f64::max);
        found.insert(*pair, ratio);
    }
    Ok(found)
}

fn duels(
    session: &Session,
    size: u64,
    line: u64,
    all: &Cores,
    pairs: &[Pair],
    control: &HashMap<Pair, f64>,
    deadline: &Deadline,
) -> Result<Vec<Duel>, Error> {
    let third = size / 3 / line.max(1) * line.max(1);
    let count = if size > LARGE { 1 } else { all.measured.len() };
    // Time by the bytes of a run.
    let mut left = third as f64 * (6 * count + 2 * pairs.len()) as f64;
    let mut run = |cores: &[u32], bytes: u64| {
        let share = deadline.part((bytes as f64 / left).min(1.0));
        left -= bytes as f64;
        loads(session, cores, bytes, line, &share)
    };
    let mut alone = HashMap::new();
    for core in &all.measured[..count] {
        let (fast, slow) = (run(&[*core], 2 * third)?[0], run(&[*core], 4 * third)?[0]);
        alone.insert(*core, fast.zip(slow));
    }
    for core in &all.measured[count..] {
        alone.insert(*core, alone[&all.measured[0]]);
    }
    let mut found = Vec::new();
    for pair in pairs {
        let both = run(&[pair.0, pair.1], 2 * third)?;
        // Of each core: with one array, with two, and together with the other core.
        let side = |core: u32, both: Option<Typical>| {
            let (fast, slow) = alone[&core]?;
            Some([fast, slow, both?])
        };
        let (Some(a), Some(b)) = (side(pair.0, both[0]), side(pair.1, both[1])) else {
            continue;
        };
        let mean = |at: usize| f64::midpoint(a[at].time, b[at].time);
        let repeated = a.iter().chain(&b).map(|t| t.repeated);
        found.push(Duel {
            pair: *pair,
            fast: mean(0),
            slow: mean(1),
            both: mean(2),
            control: control.get(pair).copied().unwrap_or(1.0),
            repeated: repeated.fold(1.0, f64::min),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_memory::geometry::{Inclusion, Level, Replacement};

    #[test]
    fn a_chase_visits_every_line_once_page_by_page() {
        let mut found = Vec::new();
        for_each(1000, 64, |at| found.push(at));
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<u64>>());
        let pages: Vec<u64> = found.iter().map(|line| line / 64).collect();
        let mut seen = pages.clone();
        seen.dedup();
        assert_eq!(seen.len(), 16, "no page is left and entered again");
        let mut chase = Chase::new(1 << 16, 64).unwrap();
        let from = chase.at;
        chase.run(512);
        assert_ne!(chase.at, from);
        chase.run(512);
        assert_eq!(chase.at, from, "after all lines it is at the start");
    }

    /// Time of a load, in a simulated cache of 32 KiB that `cores` have together or alone, 5 where it hits and `far` where not; `factor` times
    /// 1/3 of its size for each core.
    fn simulated(policy: Replacement, cores: usize, shared: bool, factor: u64, far: f64) -> f64 {
        let level = Level {
            name: "L".to_owned(),
            size: 32 << 10,
            line: 64,
            ways: 8,
            replacement: policy,
            inclusion: Inclusion::None,
            shared,
        };
        let geometry = cere_memory::Geometry {
            name: "one level".to_owned(),
            levels: vec![level],
            tlbs: Vec::new(),
        };
        let options = cere_memory::Options {
            cores,
            ..cere_memory::Options::default()
        };
        let mut caches = cere_memory::Hierarchy::new(&geometry, &options).unwrap();
        let lines = (32 << 10) / 3 / 64 * factor;
        let mut order = Vec::new();
        for_each(lines, 64, |line| order.push(line));
        for sweep in 0..20 {
            if sweep == 2 {
                caches.reset_counters();
            }
            for line in &order {
                for core in 0..cores {
                    let base = (core as u64) << 30;
                    caches.access(core, cere_memory::Access::load(base + line * 64, 8));
                }
            }
        }
        let misses = caches.counters().levels[0].miss_rate().unwrap();
        5.0 + misses * (far - 5.0)
    }

    #[test]
    fn shared_caches_of_every_replacement() {
        let mut missed = 0;
        for policy in [Replacement::Lru, Replacement::TreePlru, Replacement::Random] {
            for far in [10.0, 14.0, 70.0] {
                for together in [false, true] {
                    let duel = Duel {
                        pair: (0, 1),
                        fast: simulated(policy, 1, false, 2, far),
                        slow: simulated(policy, 1, false, 4, far),
                        both: simulated(policy, 2, together, 2, far),
                        control: 1.0,
                        repeated: 1.0,
                    };
                    let (groups, _) = shared(&[0, 1], &[duel]).unwrap();
                    assert_eq!(groups.len() == 1, together, "{policy:?} {far} {duel:?}");
                    missed += usize::from(together && duel.both / duel.fast <= 2.0);
                }
            }
        }
        // What a ratio above 2 finds: not caches whose next level is near, nor those that keep a part.
        assert!(missed >= 2, "{missed}");
    }
}
