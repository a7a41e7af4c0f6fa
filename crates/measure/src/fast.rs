//! The fast times of several runs: the minimum over the runs is taken as an invocation's undisturbed time.

use cere_capture::classes::kept_invocations;
use cere_cluster::Timed;
use cere_format::profile::{Profile, RegionKey, RegionProfile};
use cere_replay::Replay;

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

/// Quantile of a codelet's repetitions that counts. It is low because other users of a machine only ever lengthen
/// repetitions, and not 0 because the single fastest may be luck.
const FAST: f64 = 0.2;

/// Cycles of a replay's clock in seconds.
pub fn cycles_to_seconds(replay: &Replay, cycles: f64) -> f64 {
    match replay.cycles_median {
        0 => 0.0,
        median => cycles * replay.seconds_median / median as f64,
    }
}

/// The time of a replay in seconds that a fifth of its repetitions are below: other users of a machine only ever lengthen one. 0 if
/// it is below the resolution of the clock.
pub fn fast_seconds(replay: &Replay) -> f64 {
    let mut cycles = replay.cycles.clone();
    cycles.sort_unstable();
    let place = (FAST * cycles.len() as f64) as usize;
    let found = cycles.get(place).copied().unwrap_or(0);
    cycles_to_seconds(replay, found as f64)
}
