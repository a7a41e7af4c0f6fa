//! Loops whose probes cost much for what a profile shows of them: the next build leaves them in place.

use crate::selection::{pruned, tree_nodes};
use anyhow::Result;
use cere_cluster::Rule;
use cere_format::build::{Region, RegionKind, ShortLoop, ShortLoops};
use cere_format::profile::{Profile, RegionKey, RegionProfile};
use cere_format::store::Store;
use cere_store::state;
use cere_system::console::short;
use std::collections::HashMap;

/// Cycles of a dormant probe and of the call of the outlined loop.
const PROBE: f64 = 10.0;

/// Share of the run from which they are too much.
const COST: f64 = 0.001;

/// Share of the run that the loops of a profile may take out of all regions.
const UNCOVERED: f64 = 0.02;

/// The regions of a profile that `wanted` lets go, are too short to be captured and cost too much, without those that take
/// time out of all regions. Those that cost most come first.
fn too_short(profile: &Profile, wanted: impl Fn(&RegionKey) -> bool) -> Result<Vec<usize>> {
    let cost = |region: &RegionProfile| region.invocations as f64 * PROBE;
    let cycles = profile.seconds * profile.tsc_hz;
    let mut candidates: Vec<usize> = (0..profile.regions.len())
        .filter(|&region| {
            let region = &profile.regions[region];
            let short = region.cycles_mean < Rule::default().cycles;
            short && cost(region) > COST * cycles && wanted(&region.key)
        })
        .collect();
    candidates.sort_by(|a, b| {
        let [a, b] = [a, b].map(|region| cost(&profile.regions[*region]));
        b.total_cmp(&a)
    });
    let tree = tree_nodes(profile);
    let mut keep = vec![true; profile.regions.len()];
    let uncovered = |keep: &[bool]| anyhow::Ok(pruned(&tree, keep)?.uncovered);
    let bound = uncovered(&keep)? + UNCOVERED * profile.seconds;
    let mut short = Vec::new();
    for region in candidates {
        keep[region] = false;
        if uncovered(&keep)? <= bound {
            short.push(region);
        } else {
            keep[region] = true;
        }
    }
    Ok(short)
}

/// Has the store remember which loops of the profile are too short for the next build; a note if there are any.
pub fn record(store: &Store, profile: &Profile) -> Result<Option<String>> {
    let units = state::current_units(store)?;
    let mut regions: HashMap<RegionKey, &Region> = HashMap::new();
    for unit in units.iter().filter(|unit| unit.command.short.is_some()) {
        for region in &unit.regions {
            let (unit, index) = (unit.id.clone(), region.index);
            regions.insert(RegionKey { unit, index }, region);
        }
    }
    let known = state::short_loops(store)?;
    let mut loops = known.clone();
    // What was timed is judged anew.
    let timed = profile.regions.iter().filter_map(|r| regions.get(&r.key));
    let timed: Vec<_> = timed.collect();
    loops.retain(|l| !timed.iter().any(|region| l.is(region)));
    let a_loop = |key: &RegionKey| {
        regions
            .get(key)
            .is_some_and(|region| region.kind == RegionKind::Loop)
    };
    let short = too_short(profile, a_loop)?;
    for &region in &short {
        let timed = &profile.regions[region];
        let region = regions[&timed.key];
        loops.push(ShortLoop {
            function: region.function.clone(),
            file: region.file.clone(),
            line: region.line,
            ordinal: region.ordinal,
            cycles: timed.cycles_mean,
        });
    }
    if loops != known {
        let version = ShortLoops::VERSION;
        state::write_json(&store.short(), &ShortLoops { version, loops })?;
    }
    let names: Vec<&str> = short
        .iter()
        .map(|&region| profile.regions[region].name.as_str())
        .collect();
    Ok((!names.is_empty()).then(|| {
        format!(
            "too short to be captured, and entered so often that probes slow the program down: {}. A clean build with `cere instrument` leaves such loops in place; with --all-loops it does not",
            short::list(&names)
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::profile as fixture;

    #[test]
    fn what_is_entered_often_within_other_regions() {
        let mut profile = fixture::profile(&[
            ("outer", None, 0.2, 1e9),
            ("short", Some(0), 0.3, 100.0),
            ("long", Some(0), 0.2, 2000.0),
            ("alone", None, 0.2, 100.0),
            ("rare", Some(0), 0.05, 100.0),
        ]);
        for (region, invocations) in [(1, 3_000_000), (2, 100_000), (3, 2_000_000), (4, 1000)] {
            profile.regions[region].invocations = invocations;
        }
        assert_eq!(too_short(&profile, |_| true).unwrap(), [1]);
        assert!(too_short(&profile, |_| false).unwrap().is_empty());
        // Nothing covers it any more.
        profile.tree[2].parent = Some(0);
        assert!(too_short(&profile, |_| true).unwrap().is_empty());
        profile.tree[2].self_seconds = 0.01;
        assert_eq!(too_short(&profile, |_| true).unwrap(), [1]);
    }
}
