//! Loops whose inner loops become regions too, as the user chose: the list in the store, and the units that lack it.

use crate::names::{Named, named, pick};
use crate::state;
use anyhow::Result;
use cere_catalogue::bail;
use cere_format::build::{RegionKind, SplitLoop, SplitLoops, Unit};
use cere_format::store::Store;

/// Adds the loops that `patterns` name to the store's list; the loops by their names.
pub fn choose(store: &Store, patterns: &[String]) -> Result<Vec<(String, SplitLoop)>> {
    let build = state::current_units(store)?;
    let all = named(&build);
    let names: Vec<&str> = all.iter().map(|n| n.name.as_str()).collect();
    let mut chosen: Vec<(String, SplitLoop)> = Vec::new();
    for pattern in patterns {
        for at in pick(&names, pattern)? {
            check(&all[at], &build)?;
            chosen.push((all[at].name.clone(), SplitLoop::from(&all[at].region)));
        }
    }
    let mut loops = state::split_loops(store)?;
    for (_, split) in &chosen {
        if !loops.contains(split) {
            loops.push(split.clone());
        }
    }
    keep(store, loops)?;
    Ok(chosen)
}

fn keep(store: &Store, loops: Vec<SplitLoop>) -> Result<()> {
    let version = SplitLoops::VERSION;
    state::write_json(&store.split(), &SplitLoops { version, loops })
}

/// An error if splitting the region gives nothing.
fn check(chosen: &Named, build: &[Unit]) -> Result<()> {
    let (name, region) = (&chosen.name, &chosen.region);
    if region.kind == RegionKind::Parallel {
        bail!(
            E2023,
            "--split {name}: this is a parallel region, which is captured as a whole; name a loop (`cere regions` lists them)"
        );
    }
    let unit = build.iter().find(|unit| unit.id == chosen.key.unit);
    let split = unit.is_some_and(|unit| unit.command.split.iter().any(|s| s.is(region)));
    if region.inside == Some(0) && !split {
        bail!(
            E2023,
            "--split {name}: this loop has no loop inside that is not a region already; loops of functions that it calls are regions of their own (`cere regions` lists them)"
        );
    }
    Ok(())
}

/// The units that have one of the loops and were compiled without splitting it.
pub fn unsplit<'a>(build: &'a [Unit], chosen: &[(String, SplitLoop)]) -> Vec<&'a Unit> {
    let lacks = |unit: &&Unit| {
        let has = |split: &SplitLoop| unit.regions.iter().any(|r| split.is(r));
        chosen
            .iter()
            .any(|(_, split)| has(split) && !unit.command.split.contains(split))
    };
    build.iter().filter(lacks).collect()
}

/// Takes from the list what the build has no more: a loop whose line has changed. What was taken.
pub fn forget(store: &Store, build: &[Unit]) -> Result<Vec<SplitLoop>> {
    let loops = state::split_loops(store)?;
    let there = |split: &SplitLoop| {
        let mut regions = build.iter().flat_map(|unit| &unit.regions);
        regions.any(|region| split.is(region))
    };
    let (kept, gone): (Vec<_>, Vec<_>) = loops.into_iter().partition(there);
    if !gone.is_empty() {
        keep(store, kept)?;
    }
    Ok(gone)
}
