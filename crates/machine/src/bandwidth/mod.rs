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

mod deadline;
mod many;
mod measured;
mod single;

pub(crate) use deadline::Deadline;
pub use measured::Measured;

use crate::code::Code;
use crate::document::found;
use crate::place::usable;
use crate::session::Session;
use crate::system;
use crate::{Error, not_here};
use cere_format::machine::Cache;
use measured::add;
use std::path::Path;

/// Measures bandwidths of `caches`, the nearest first, and of memory; in at most 14 seconds, quick in 3. A level whose size is not
/// known is left out, with a [`Found`](cere_format::machine::Found) that says so. An error where memory or threads are refused.
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

    if !Code::runs() {
        let why = not_here(cere_arch::HERE);
        measured.found.push(found("bandwidths", 0.0, why));
        return Ok(measured);
    }
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
        let what = format!("bandwidths of level {level}");
        measured.found.push(found(what, 0.0, why));
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
