//! Bandwidths of caches and memory, for rooflines, and the cost of first touch.
//!
//! As in the roofline thesis (5.3) a kernel's width, unrolling and number of streams are searched, and the best counts. In a cache a
//! window goes through half of the level many times; in memory each window takes the next part of arrays that are four times the last
//! level.

pub(crate) mod kernels;
pub(crate) mod plan;
pub(crate) mod spin;
pub(crate) mod touch;
pub(crate) mod window;

mod many;
mod single;

use crate::Error;
use crate::place::usable;
use crate::session::Session;
use crate::system;
use cere_format::machine::{Bandwidth, Cache, Curve, FirstTouch, Found};
use kernels::{Kernel, Shape};
use plan::Spot;
use std::path::Path;
use std::time::{Duration, Instant};

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Of each level and memory, of one core, then of more.
    pub bandwidths: Vec<Bandwidth>,
    /// By node.
    pub first_touch: Vec<FirstTouch>,
    /// How each was found; why one was not.
    pub found: Vec<Found>,
    /// Bandwidth by working set, and by cores.
    pub curves: Vec<Curve>,
}

/// The best way to write a kernel, found on one core.
#[derive(Debug, Clone, Copy)]
struct Winner {
    kernel: Kernel,
    shape: Shape,
    spot: Spot,
    sweeps: u64,
    best: window::Best,
}

/// When a part of the measurement has to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn within(session: &Session, seconds: f64) -> Self {
        let seconds = seconds.min(session.left()).max(0.0);
        Self(Instant::now() + Duration::from_secs_f64(seconds))
    }

    pub(crate) fn left(&self) -> f64 {
        self.0
            .saturating_duration_since(Instant::now())
            .as_secs_f64()
    }

    /// A part of what is left.
    pub(crate) fn part(&self, share: f64) -> Self {
        Self(Instant::now() + Duration::from_secs_f64(self.left() * share))
    }

    pub(crate) fn over(&self) -> bool {
        Instant::now() >= self.0
    }
}

/// Measures bandwidths of `caches`, the nearest first, and of memory; in at most 14 seconds, quick in 3. A level whose size is not
/// known is left out, with a [`Found`] that says so. An error where memory or threads are refused.
pub fn measure(session: &Session, caches: &[Cache]) -> Result<Measured, Error> {
    let deadline = Deadline::within(session, session.pick(2.5, 13.0));
    let (cores, pinned) = match usable() {
        cores if cores.is_empty() => (vec![0], false),
        cores => (cores, true),
    };
    let watch = system::Watch::new(&cores);
    let mut measured = Measured::default();
    session.step("first touch of pages");
    let nodes = touch::nodes(Path::new("/sys/devices/system/node"), &cores);
    (measured.first_touch, measured.found) = touch::measure(session, &nodes, pinned)?;

    session.step("bandwidth of one core");
    let spots = plan::spots(caches, 1, |_| 1, system::free_memory());
    let work = || single::measure(session, &spots, &deadline.part(0.6));
    let (winners, curve) = match pinned {
        true => crate::place::on(cores[0], work)??,
        false => work()?,
    };
    measured.curves.extend(curve);
    for winner in &winners {
        add(&mut measured, winner, 1, winner.spot, winner.best);
    }
    for (level, why) in spots.iter().filter_map(|s| s.as_ref().err()) {
        measured.found.push(Found {
            what: format!("bandwidths of level {level}"),
            confidence: 0.0,
            how: why.clone(),
        });
    }
    if pinned {
        many::measure(session, caches, &cores, &winners, &deadline, &mut measured)?;
    }
    let disturbed = watch.end();
    for found in &mut measured.found {
        found.confidence *= disturbed.factor();
    }
    Ok(measured)
}

fn add(measured: &mut Measured, winner: &Winner, cores: u32, spot: Spot, best: window::Best) {
    let kernel = winner.kernel;
    let mut how = match kernel {
        Kernel::Random => format!(
            "loads from random lines, {} generators of addresses side by side, a line counted for each",
            kernels::GENERATORS
        ),
        _ => format!(
            "{} bits, {} vectors unrolled, {} streams: the best of those tried; ",
            winner.shape.bits, winner.shape.unroll, winner.shape.streams
        ),
    };
    if kernel != Kernel::Random {
        how += match kernel.moved(spot.level) {
            moved if moved > 1.0 => "moved bytes assume that a store reads its line first",
            _ => "no line is read for a store",
        };
    }
    let mut confidence = best.repeated;
    if !spot.whole {
        how += "; free memory, or the time to touch it, is too little for the whole working set";
        confidence *= 0.5;
    }
    measured.found.push(Found {
        what: format!("bandwidths[{}]", measured.bandwidths.len()),
        confidence,
        how,
    });
    measured.bandwidths.push(Bandwidth {
        level: spot.level,
        name: kernel.name().to_owned(),
        cores,
        bytes_per_second: best.rate,
        moved: kernel.moved(spot.level),
        working_set: match kernel {
            Kernel::Random => window::spread(spot),
            _ => spot.set,
        },
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u32, size_bytes: u64) -> Cache {
        Cache {
            level,
            size_bytes,
            confidence: 0.9,
            ..Cache::default()
        }
    }

    #[test]
    fn levels_cores_and_reasons() {
        let _quiet = crate::sharing::tests::quiet();
        let session = Session::new(true, 20.0, &|_| {});
        let caches = [cache(1, 32 << 10), cache(2, 0)];
        let measured = measure(&session, &caches).unwrap();
        let rate = |level, name: &str, cores| {
            let mut all = measured.bandwidths.iter();
            let found = all.find(|b| (b.level, b.cores) == (level, cores) && b.name == name);
            found
                .unwrap_or_else(|| panic!("{level} {name} {cores}: {measured:?}"))
                .bytes_per_second
        };
        assert!(rate(1, "load", 1) > rate(0, "load", 1));
        assert!(rate(1, "copy", 1) > rate(0, "random", 1));
        assert!(rate(0, "nt-store", 1) > 0.0);
        let cores = crate::place::allowed().len() as u32;
        if cores > 1 {
            let (one, all) = (rate(1, "load", 1), rate(1, "load", cores));
            let at = measured
                .bandwidths
                .iter()
                .position(|b| b.bytes_per_second == all);
            let what = format!("bandwidths[{}]", at.unwrap());
            let found = measured.found.iter().find(|f| f.what == what).unwrap();
            // On a machine that others fill, both never run at once: then the value is not to be used.
            let usable = found.confidence >= cere_format::machine::USABLE;
            assert!(all >= 0.8 * one || !usable, "{one} {all} {found:?}");
        }
        let unknown = measured
            .found
            .iter()
            .find(|f| f.what.contains("level 2"))
            .unwrap();
        assert!(unknown.confidence == 0.0 && unknown.how.contains("not known"));
        for at in 0..measured.bandwidths.len() {
            let what = format!("bandwidths[{at}]");
            assert!(measured.found.iter().any(|f| f.what == what), "{what}");
        }
    }
}
