//! One set of flags for the whole program, where it gains nearly as much as the regions' own: people prefer a line in a Makefile.

use super::arms::{Arm, Arms, ratios};
use super::found::Found;
use crate::Variant;
use cere_measure::{Builds, Measure, Target};
use cere_timing::stats::gain;

/// Winners that are tried on all regions, those with most gain of the run.
const TRIED: usize = 3;
/// Rounds.
const ROUNDS: usize = 7;
/// Share of the regions' gain that one set has to reach.
const ENOUGH: f64 = 0.9;

/// A set of flags for all regions.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    /// Its flags.
    pub flags: Vec<String>,
    /// Share of the run that it saves, 0 to 1.
    pub saves: f64,
    /// The same with each region's own winner.
    pub own: f64,
    /// The regions with their times under it over those as built.
    pub regions: Vec<(String, f64)>,
}

/// Share of the run that a region's winner saves.
fn saves(found: &Found) -> f64 {
    let winner = found.winner.as_ref();
    winner.map_or(0.0, |w| found.share * (1.0 - w.gain.ratio))
}

/// The sets to try, the most promising first.
fn candidates(found: &[Found]) -> Vec<Variant> {
    let mut winners: Vec<&Found> = found.iter().filter(|f| f.winner.is_some()).collect();
    winners.sort_by(|a, b| saves(b).total_cmp(&saves(a)));
    let mut sets: Vec<Variant> = Vec::new();
    for variant in winners
        .iter()
        .filter_map(|f| f.winner.as_ref())
        .map(|w| &w.variant)
    {
        // A pipeline is no line for a Makefile.
        if variant.passes.is_none() && !sets.contains(variant) {
            sets.push(variant.clone());
        }
    }
    sets.truncate(TRIED);
    sets
}

/// Times the regions under the sets of the best winners. None if the time `is_over` before, if there are fewer than two winners, or no set is right everywhere and
/// reaches nine tenths of what the winners save.
pub fn common(
    lab: &dyn Measure,
    targets: &[Target],
    found: &[Found],
    is_over: &dyn Fn() -> bool,
) -> Option<Common> {
    let sets = candidates(found);
    let own: f64 = found.iter().map(saves).sum();
    if found.iter().filter(|f| f.winner.is_some()).count() < 2 || sets.is_empty() {
        return None;
    }
    let mut all: Vec<Option<Vec<(String, f64, f64)>>> = vec![Some(Vec::new()); sets.len()];
    for found in found {
        let Some(target) = targets.iter().find(|t| t.name == found.name) else {
            continue;
        };
        if is_over() {
            return None;
        }
        let each = times(lab, target, &sets);
        for (all, ratio) in all.iter_mut().zip(each) {
            match (ratio, all.as_mut()) {
                (Some(ratio), Some(list)) => list.push((found.name.clone(), found.share, ratio)),
                _ => *all = None,
            }
        }
    }
    let whole = |list: &[(String, f64, f64)]| {
        list.iter()
            .map(|(_, share, ratio)| share * (1.0 - ratio))
            .sum::<f64>()
    };
    let usable = sets
        .into_iter()
        .zip(all)
        .filter_map(|(set, list)| Some((set, list?)));
    let best = usable.max_by(|a, b| whole(&a.1).total_cmp(&whole(&b.1)));
    let (set, list) = best?;
    let saves = whole(&list);
    (saves >= ENOUGH * own).then(|| Common {
        flags: set.flags,
        saves,
        own,
        regions: list
            .into_iter()
            .map(|(name, _, ratio)| (name, ratio))
            .collect(),
    })
}

/// Times of a region under each of `sets` over that of the code as built; none for one that cannot be used.
fn times(lab: &dyn Measure, target: &Target, sets: &[Variant]) -> Vec<Option<f64>> {
    let none = vec![None; sets.len()];
    let default = Variant::default();
    let Ok(as_built) = lab.build(target, &default) else {
        return none;
    };
    let builds: Vec<Option<Builds>> = sets.iter().map(|set| lab.build(target, set).ok()).collect();
    let usable = sets
        .iter()
        .zip(&builds)
        .filter_map(|(set, built)| Some((set, built.as_ref()?)));
    let new: Vec<(&Variant, &Builds)> = usable
        .filter(|(_, built)| built.code != as_built.code)
        .collect();
    let arms = std::iter::once(Arm::of(&default, &as_built))
        .chain(new.iter().map(|(set, built)| Arm::of(set, built)));
    let mut turns = Arms::turns(lab, target, arms.collect());
    let numbers: Vec<usize> = (1..=new.len()).collect();
    if !new.is_empty() && (0..ROUNDS).any(|_| turns.round(&numbers).is_err()) {
        return none;
    }
    let of = |set: &Variant| match new.iter().position(|(other, _)| *other == set) {
        Some(place) if turns.failure(place + 1).is_some() => None,
        Some(place) => gain(&ratios(&turns, place + 1)).map(|g| g.ratio),
        // The same code as built.
        None => Some(1.0),
    };
    sets.iter()
        .zip(&builds)
        .map(|(set, built)| built.as_ref().and_then(|_| of(set)))
        .collect()
}
