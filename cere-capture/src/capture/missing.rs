//! Remembers what earlier captures of a program could not capture.

use super::choose::{Choice, Skipped};
use anyhow::Result;
use cere_format::package::{CapturedRun, Represents};
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_package::io::read_manifest;
use cere_store::{codelets, state};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// `captures.json` of a store: why regions have no codelets.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Refused {
    /// SHA-256 of the program's file.
    program: String,
    command: Vec<String>,
    /// The reason by name of the region.
    regions: BTreeMap<String, String>,
}

impl Refused {
    /// The refusals for the program of this SHA-256 in this command.
    pub fn of(store: &Store, program: &str, command: &[String]) -> Self {
        let known: Option<Self> = state::read_json(&store.captures()).ok();
        known
            .filter(|k| k.program == program && k.command == command)
            .unwrap_or_else(|| Self {
                program: program.to_owned(),
                command: command.to_vec(),
                regions: BTreeMap::new(),
            })
    }

    /// The refusals for the command of a profile.
    pub fn of_profile(store: &Store, profile: &Profile) -> BTreeMap<String, String> {
        let known: Option<Self> = state::read_json(&store.captures()).ok();
        let same = |k: &Self| k.program == profile.program && k.command == profile.command;
        known.filter(same).map(|k| k.regions).unwrap_or_default()
    }

    /// The refusals for the last captured program.
    pub fn last(store: &Store) -> BTreeMap<String, String> {
        let known: Option<Self> = state::read_json(&store.captures()).ok();
        known.unwrap_or_default().regions
    }

    /// Adds the regions that a capture skipped and removes those that it captured.
    pub fn update(
        &mut self,
        store: &Store,
        taken: &[codelets::Listed],
        skipped: &[Skipped],
    ) -> Result<()> {
        for one in skipped {
            self.regions.insert(one.region.clone(), one.reason.clone());
        }
        for one in taken {
            self.regions.remove(&one.region);
        }
        state::write_json(&store.captures(), self)
    }

    /// Removes from `choices` what the store has of a run that is the `same`, and what was refused before. Returns the latter.
    pub fn leave_out(
        &self,
        store: &Store,
        same: &dyn Fn(&CapturedRun) -> bool,
        choices: &mut Vec<Choice>,
    ) -> Result<Vec<Skipped>> {
        let mut there: HashMap<(RegionKey, u64, u64), Option<Represents>> = HashMap::new();
        for file in codelets::files(store)? {
            if let Ok(manifest) = read_manifest(&file)
                && manifest.in_vivo.is_some()
                && manifest.run.as_ref().is_none_or(same)
            {
                let thread = manifest.of_thread.map_or(0, |thread| thread.number);
                there.insert(
                    (manifest.key, thread, manifest.invocation),
                    manifest.represents,
                );
            }
        }
        let mut skipped = Vec::new();
        choices.retain_mut(|choice| {
            if let Some(reason) = self.regions.get(&choice.name) {
                skipped.push(Skipped {
                    region: choice.name.clone(),
                    reason: reason.clone(),
                    named: choice.named,
                });
                return false;
            }
            let known = |(invocation, represents): &(u64, Option<Represents>)| {
                let found = there.get(&(choice.key.clone(), choice.thread, *invocation));
                found.is_some_and(|found| represents.is_none() || found == represents)
            };
            // All or none: a new representative replaces all earlier ones of its region.
            !choice.invocations.iter().all(known)
        });
        Ok(skipped)
    }
}
