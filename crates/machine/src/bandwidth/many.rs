//! Several cores at once, each in arrays of its own that it touched first.

use super::deadline::Deadline;
use super::measured::{Measured, Winner, add};
use super::plan::{Spot, spots};
use super::single::fitting;
use super::spin::Spin;
use super::window::{Runner, Window, best};
use crate::document::{curve, found};
use crate::session::Session;
use crate::system;
use crate::{Error, place};
use cere_format::machine::{Cache, Curve};
use cere_timing::area::Area;

/// Numbers of cores: 2, 4, ..., all.
#[must_use]
fn counts(cores: usize, quick: bool) -> Vec<usize> {
    let mut found: Vec<usize> = (1..usize::BITS)
        .map(|power| 1 << power)
        .take_while(|count| *count < cores)
        .collect();
    if quick {
        found.clear();
    }
    found.extend((cores > 1).then_some(cores));
    found
}

/// How many of `used` have a level together, as measured or else as the system tells: the most that any of them is among.
fn users(cache: &Cache, used: &[u32]) -> u64 {
    let among = |group: &[u32]| used.iter().filter(|core| group.contains(core)).count() as u64;
    if let Some(groups) = &cache.shared_by {
        return groups.iter().map(|g| among(g)).max().unwrap_or(1);
    }
    let told = |core: &u32| {
        let caches = cere_format::caches::of(*core).into_iter();
        let mut same = caches.filter(|c| c.level == cache.level);
        same.next()
            .map_or(1, |c| among(&cere_format::caches::processors(&c.shared)))
    };
    used.iter().map(told).max().unwrap_or(1)
}

/// Adds the bandwidths of 2, 4, ..., all cores, written as the best of one core.
pub fn measure(
    session: &Session,
    caches: &[Cache],
    cores: &[u32],
    winners: &[Winner],
    deadline: &Deadline,
    measured: &mut Measured,
) -> Result<(), Error> {
    let counts = counts(cores.len(), session.quick);
    for (at, count) in counts.iter().enumerate() {
        session.step(&format!("bandwidth of {count} cores"));
        let used = &cores[..*count];
        let of = |level| caches.iter().find(|c| c.level == level);
        let users = |level| of(level).map_or(1, |c| users(c, used));
        let spots = spots(caches, *count as u64, users, system::free_memory());
        let mut plan = Vec::new();
        for winner in winners {
            let level = winner.spot.level;
            let spot = spots.iter().flatten().find(|s| s.level == level);
            plan.extend(spot.map(|spot| (*winner, *spot)));
        }
        for (level, why) in spots.iter().filter_map(|s| s.as_ref().err()) {
            let what = format!("bandwidths of level {level}, {count} cores");
            measured.found.push(found(what, 0.0, why));
        }
        let share = deadline.part(1.0 / (counts.len() - at) as f64);
        let rates = together(session, used, &plan, &share)?;
        for ((winner, _), (spot, rates)) in plan.iter().zip(rates) {
            if let Some(best) = best(rates) {
                add(measured, winner, *count as u32, spot, best);
            }
        }
    }
    measured.curves.extend(by_cores(measured));
    Ok(())
}

/// Rates of all cores together, by entry of the plan, with what they worked in.
fn together(
    session: &Session,
    cores: &[u32],
    plan: &[(Winner, Spot)],
    deadline: &Deadline,
) -> Result<Vec<(Spot, Vec<f64>)>, Error> {
    let touch = deadline.part(0.4);
    // One for each entry, as each ends when its time is over.
    let meetings: Vec<Spin> = plan.iter().map(|_| Spin::new(cores.len())).collect();
    let (ready, count) = (Spin::new(cores.len()), session.pick(40, 200));
    let windows = place::together(cores, |index, _| -> Result<_, Error> {
        // Nobody may miss at a rendezvous: all that can fail comes before the first.
        let prepared = prepare(plan, &touch);
        if prepared.is_err() {
            ready.end_at(0);
        }
        let together = ready.meet(0);
        let (area, mut runners, spots) = prepared?;
        let mut found: Vec<Vec<Window>> = vec![Vec::new(); plan.len()];
        let mut turn = 0;
        for (at, (runner, spin)) in runners.iter_mut().zip(&meetings).enumerate() {
            if !together {
                break;
            }
            let share = deadline.part(1.0 / (plan.len() - at) as f64);
            runner.warm(&mut turn);
            for round in 0.. {
                if index == 0 && (round == count || round > 7 && share.over()) {
                    spin.end_at(round);
                }
                if !spin.meet(round) {
                    break;
                }
                found[at].push(runner.run(&mut turn));
            }
        }
        drop(area);
        Ok((found, spots))
    })?;
    let results = windows.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (windows, spots): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let rates = |entry: usize| {
        let turns = windows.iter().map(|w| w[entry].len()).min().unwrap_or(0);
        let turn = |turn: usize| windows.iter().map(move |w| w[entry][turn]);
        let rates = (0..turns).map(|at| (of(session, turn(at)), at_once(turn(at))));
        trusted(rates.collect())
    };
    // The core that touched least tells.
    let spot = |entry: usize| spots.iter().map(|s| s[entry]).min_by_key(|s| s.set);
    let both = (0..plan.len()).filter_map(|entry| Some((spot(entry)?, rates(entry))));
    Ok(both.collect())
}

/// The arrays of a core, touched by it, and what runs in them.
fn prepare(
    plan: &[(Winner, Spot)],
    deadline: &Deadline,
) -> Result<(Area, Vec<Runner>, Vec<Spot>), Error> {
    let spots: Vec<Spot> = plan.iter().map(|(_, spot)| *spot).collect();
    let (area, spots) = fitting(&spots, deadline)?;
    let mut runners = Vec::new();
    for ((winner, _), spot) in plan.iter().zip(&spots) {
        // SAFETY: the area is returned with the runners, and has room for the largest spot.
        let runner = unsafe { Runner::new(winner.kernel, winner.shape, *spot, area.address())? };
        // As many bytes as one core went through though its share of a level is smaller.
        let smaller = (winner.spot.set / spot.set.max(1)).max(1);
        let sweeps = match winner.sweeps {
            1 => 1,
            sweeps => sweeps * smaller,
        };
        runners.push(runner.with_sweeps(sweeps));
    }
    Ok((area, runners, spots))
}

/// Whether all windows ran at once for three quarters of the time: no thread was kept off its core.
fn at_once(windows: impl Iterator<Item = Window> + Clone) -> bool {
    let from = windows
        .clone()
        .map(|w| (w.from, w.from))
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let to = windows
        .map(|w| (w.to, w.to))
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (Some((first, begun)), Some((ended, last))) = (from, to) else {
        return false;
    };
    ended.saturating_sub(begun) as f64 >= 0.75 * last.saturating_sub(first) as f64
}

/// Rates of windows that ran at once; if there are fewer than three, the best two of all, which leaves no confidence.
fn trusted(rates: Vec<(f64, bool)>) -> Vec<f64> {
    let good: Vec<f64> = rates
        .iter()
        .filter(|(_, at_once)| *at_once)
        .map(|(rate, _)| *rate)
        .collect();
    if good.len() > 2 {
        return good;
    }
    let mut all: Vec<f64> = rates.into_iter().map(|(rate, _)| rate).collect();
    all.sort_by(|a, b| b.total_cmp(a));
    all.truncate(2);
    all
}

/// The rate of windows that were at once: all bytes, from the first start to the last end.
fn of(session: &Session, windows: impl Iterator<Item = Window> + Clone) -> f64 {
    let from = windows.clone().map(|w| w.from).min().unwrap_or(0);
    let to = windows.clone().map(|w| w.to).max().unwrap_or(0);
    let bytes: u64 = windows.map(|w| w.bytes).sum();
    bytes as f64 / session.nanoseconds(to.saturating_sub(from).max(1)) * 1e9
}

fn by_cores(measured: &Measured) -> Vec<Curve> {
    let one = |name: &str| {
        let same = measured.bandwidths.iter();
        let same = same.filter(|b| b.level == 0 && b.name == name);
        let points: Vec<_> = same
            .map(|b| (f64::from(b.cores), b.bytes_per_second))
            .collect();
        let name = format!("Bandwidth of memory by cores, {name}");
        (points.len() > 1).then(|| curve([&name, "cores", "bytes per second"], points, None))
    };
    ["load", "copy", "random"]
        .into_iter()
        .filter_map(one)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_cores() {
        assert!(counts(1, false).is_empty());
        assert_eq!(counts(2, false), [2]);
        assert_eq!(counts(12, false), [2, 4, 8, 12]);
        assert_eq!(counts(12, true), [12]);
    }

    #[test]
    fn who_has_a_level_together() {
        let cache = Cache {
            level: 2,
            shared_by: Some(vec![vec![0, 1], vec![2, 3]]),
            ..Cache::default()
        };
        assert_eq!(users(&cache, &[0, 2]), 1);
        assert_eq!(users(&cache, &[0, 2, 3]), 2);
    }

    #[test]
    fn windows_that_were_apart_are_not_trusted() {
        let window = |from, to| Window {
            from,
            to,
            bytes: 64,
        };
        assert!(at_once([window(0, 100), window(5, 110)].into_iter()));
        assert!(!at_once([window(0, 100), window(90, 190)].into_iter()));
        assert!(!at_once(std::iter::empty()));
        let rates = vec![(9.0, false), (5.0, true), (8.0, false), (6.0, true)];
        assert_eq!(best(trusted(rates.clone())).unwrap().repeated, 0.0);
        let more = [rates, vec![(5.5, true)]].concat();
        assert_eq!(trusted(more), [5.0, 6.0, 5.5]);
    }
}
