//! Which regions a capture run is after.

use crate::names::{Named, is_glob, pick};
use anyhow::Result;
use cere_cluster::{Candidate, Rejection, Rule, select};
use cere_format::profile::{Profile, RegionKey};
use std::collections::BTreeMap;

/// A region that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub key: RegionKey,
    /// Whether the user named it, so that missing it is a failure of its own.
    pub named: bool,
}

/// A region that gets no codelet.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Skipped {
    /// Its name.
    pub region: String,
    /// Why.
    pub reason: String,
    /// Whether the user named it.
    #[serde(skip)]
    pub named: bool,
}

/// The regions that `patterns` pick. Those that were not outlined are skipped: with a word where they were named,
/// silently where a glob met them.
pub fn by_pattern(all: &[Named], patterns: &[String]) -> Result<(Vec<Choice>, Vec<Skipped>)> {
    let names: Vec<&str> = all.iter().map(|n| n.name.as_str()).collect();
    let mut picked: BTreeMap<usize, bool> = BTreeMap::new();
    for pattern in patterns {
        for index in pick(&names, pattern)? {
            *picked.entry(index).or_default() |= !is_glob(pattern);
        }
    }
    let (mut choices, mut skipped) = (Vec::new(), Vec::new());
    for (index, named) in picked {
        let region = &all[index];
        if region.region.outlined {
            choices.push(Choice {
                name: region.name.clone(),
                key: region.key.clone(),
                named,
            });
        } else if named {
            let reason = region.region.reason.as_deref().unwrap_or("unknown");
            skipped.push(Skipped {
                region: region.name.clone(),
                reason: format!("it was not outlined: {reason}"),
                named,
            });
        }
    }
    Ok((choices, skipped))
}

/// The regions of `profile` that are worth a codelet. Of the others those are listed that take time, but in too
/// short invocations.
pub fn by_profile(profile: &Profile) -> (Vec<Choice>, Vec<Skipped>) {
    let candidates: Vec<Candidate> = profile
        .regions
        .iter()
        .map(|r| Candidate {
            share: r.share,
            cycles_mean: r.cycles_mean,
        })
        .collect();
    let (mut choices, mut skipped) = (Vec::new(), Vec::new());
    for (region, answer) in profile
        .regions
        .iter()
        .zip(select(&candidates, Rule::default()))
    {
        match answer {
            Ok(()) => choices.push(Choice {
                name: region.name.clone(),
                key: region.key.clone(),
                named: false,
            }),
            Err(Rejection::Share { .. }) => {}
            Err(short) => skipped.push(Skipped {
                region: region.name.clone(),
                reason: short.to_string(),
                named: false,
            }),
        }
    }
    (choices, skipped)
}
