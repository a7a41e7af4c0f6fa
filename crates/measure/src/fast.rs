//! The fast times of several runs: the minimum over the runs is taken as an invocation's undisturbed time.

use cere_capture::classes::kept_invocations;
use cere_cluster::Timed;
use cere_format::profile::{Profile, RegionKey, RegionProfile};

/// The minimum of `values`; `None` if there are none.
pub fn minimum(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.min_by(f64::total_cmp)
}

/// Seconds of a region: the sum of each invocation's minimum over the runs. If the runs have different numbers of
/// invocations, the time of the fastest run.
pub fn region_seconds(runs: &[Profile], key: &RegionKey) -> Option<f64> {
    let of = |p: &Profile| p.region(key).cloned();
    let found: Vec<(RegionProfile, f64)> = runs
        .iter()
        .filter_map(|p| Some((of(p)?, p.tsc_hz)))
        .collect();
    let first = &found.first()?.0;
    let alike = |r: &RegionProfile| r.invocations == first.invocations;
    if !found.iter().all(|(r, _)| alike(r)) {
        return minimum(found.iter().map(|(r, _)| r.inclusive_seconds));
    }
    let invocation = |timed: Timed| {
        let cycles = |(region, hz): &(RegionProfile, f64)| {
            let cycles = region.trace.get(timed.invocation).filter(|c| *c > 0)?;
            Some(cycles as f64 / hz * timed.weight)
        };
        minimum(found.iter().filter_map(cycles)).unwrap_or(0.0)
    };
    Some(kept_invocations(first).map(invocation).sum())
}
