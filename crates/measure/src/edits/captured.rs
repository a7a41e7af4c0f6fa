//! What a store has of the regions that edits are tried on.

use super::contents::State;
use super::given::Sources;
use super::{Edits, Tried, Variant};
use crate::{Effort, Member, Replays, Target};
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::build::Unit;
use cere_format::profile::{Profile, RegionKey};
use cere_store::{codelets, find, state};
use std::collections::BTreeMap;
use std::path::Path;

/// Captured regions of a store, with what their code was compiled from.
pub struct Captured {
    /// By the names of the regions.
    regions: BTreeMap<String, Target>,
    units: BTreeMap<String, Unit>,
    profile: Option<Profile>,
}

/// A region with what came of each variant.
pub struct Region {
    /// Its name.
    pub name: String,
    /// Names of its codelets.
    pub codelets: Vec<String>,
    /// Its share of the run; none without a profile of it.
    pub share: Option<f64>,
    /// The variants.
    pub tried: Vec<Tried>,
}

impl Captured {
    /// The regions and codelets that `what` names; all if it is empty. Fails if one was not captured from a build of the store.
    pub fn find(replays: &Replays, what: &[String]) -> Result<Self> {
        let store = replays.store;
        let all = ["*".to_owned()];
        let what = if what.is_empty() { &all } else { what };
        let mut members: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        let mut units = BTreeMap::new();
        for file in find::all(store, what, replays.events())? {
            let member = Member::open(replays, &file)?;
            let recorded = member.manifest.units.iter();
            let known: Vec<Unit> = recorded
                .filter_map(|unit| state::unit(store, &unit.id).ok())
                .collect();
            if known.is_empty() {
                bail!(
                    E6107,
                    "{} was not captured from a build of the store {}: edits of its source cannot be compiled",
                    codelets::display_name(&file),
                    store.root().display()
                );
            }
            units.extend(known.into_iter().map(|unit| (unit.id.clone(), unit)));
            let name = member.manifest.region_name.clone();
            members.entry(name).or_default().push(member);
        }
        let profile = state::profile(store).ok();
        let targets = members.into_iter().map(|(name, members)| {
            let key = &members[0].manifest.key;
            let share = share(profile.as_ref(), key).unwrap_or(0.0);
            let kind = members[0].manifest.region.kind;
            (name.clone(), Target::new(&name, kind, share, members))
        });
        Ok(Self {
            regions: targets.collect(),
            units,
            profile,
        })
    }

    /// The files that the regions' code was compiled from.
    pub fn sources(&self) -> Sources {
        Sources::of(self.units.values())
    }

    /// Those of `files` that are not what the regions' code was compiled from.
    pub fn changed<'f>(&self, files: &'f State) -> Vec<&'f Path> {
        let then: BTreeMap<&Path, &str> = self
            .units
            .values()
            .flat_map(|unit| &unit.sources)
            .map(|source| (source.file.as_path(), source.sha256.as_str()))
            .collect();
        let other =
            |(file, sha256): &(&'f Path, String)| then.get(file).is_none_or(|then| then != sha256);
        files.hashes().filter(other).map(|(file, _)| file).collect()
    }

    /// The regions with their codelets, by name.
    pub fn regions(&self) -> &BTreeMap<String, Target> {
        &self.regions
    }

    /// Tries all variants on a region; none if no variant changes it. An event names each variant that does not.
    pub fn attempt(
        &self,
        edits: &mut Edits,
        target: &Target,
        variants: &[Variant],
        effort: Effort,
    ) -> Result<Option<Region>> {
        let name = &target.name;
        let found = edits
            .attempt(target, variants, effort)
            .with_context(|| format!("{name} cannot be tried"))?;
        let mut tried = Vec::new();
        for (number, (variant, found)) in variants.iter().zip(found).enumerate() {
            if edits.baseline == Some(number) {
                continue;
            }
            match found {
                Some(found) => tried.push(found),
                None if !variant.name.is_empty() => edits
                    .replays
                    .events()
                    .note(format!("{}: nothing in it changes {name}", variant.name)),
                None => {}
            }
        }
        let members = target.members.iter();
        Ok((!tried.is_empty()).then(|| Region {
            name: name.clone(),
            codelets: members.clone().map(|m| m.manifest.name.clone()).collect(),
            share: members
                .take(1)
                .find_map(|m| share(self.profile.as_ref(), &m.manifest.key)),
            tried,
        }))
    }
}

/// The share of the run that the region takes.
fn share(profile: Option<&Profile>, key: &RegionKey) -> Option<f64> {
    let found = profile?.regions.iter().find(|r| r.key == *key);
    found.map(|region| region.share)
}
