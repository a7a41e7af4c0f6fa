//! The fast times of several runs: what an invocation took at least is its own time.

use cere_cluster::Timed;
use cere_format::profile::{Profile, RegionKey, RegionProfile};
use cere_run::classes::kept;

/// The least of some seconds.
pub fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.min_by(f64::total_cmp)
}

/// Seconds of a region, each invocation with the least that it took in any run. Of runs with different invocations the
/// fastest counts.
pub fn region_seconds(runs: &[Profile], key: &RegionKey) -> Option<f64> {
    let of = |p: &Profile| p.region(key).cloned();
    let found: Vec<(RegionProfile, f64)> = runs
        .iter()
        .filter_map(|p| Some((of(p)?, p.tsc_hz)))
        .collect();
    let first = &found.first()?.0;
    let alike = |r: &RegionProfile| r.invocations == first.invocations;
    if !found.iter().all(|(r, _)| alike(r)) {
        return least(found.iter().map(|(r, _)| r.inclusive_seconds));
    }
    let invocation = |timed: Timed| {
        let cycles = |(region, hz): &(RegionProfile, f64)| {
            let cycles = region.trace.get(timed.invocation).filter(|c| *c > 0)?;
            Some(cycles as f64 / hz * timed.weight)
        };
        least(found.iter().filter_map(cycles)).unwrap_or(0.0)
    };
    Some(kept(first).map(invocation).sum())
}
