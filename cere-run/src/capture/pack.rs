//! Makes codelets from raw captures.

use super::choose::{Choice, Skipped, never_ran};
use super::runs::{Found, Runs};
use anyhow::{Context, Result};
use cere_console::{print, progress};
use cere_format::package::Represents;
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_package::io::read_manifest;
use cere_package::{PackError, PackInput, pack};
use cere_store::codelets::{Listed, Verdicts};
use cere_store::current::Current;
use cere_store::{codelets, state};

/// How often a region ran in the profile.
fn invocations_in(profile: &Profile, key: &RegionKey) -> u64 {
    let region = profile.region(key);
    region.map_or(0, |r| r.invocations)
}

/// The outcome of the wanted invocations.
#[derive(Default)]
pub struct Outcome {
    /// New codelets.
    pub codelets: Vec<Listed>,
    /// Regions and invocations without a codelet, and why.
    pub skipped: Vec<Skipped>,
    /// Invocations that no run captured because other captures disturbed them.
    pub postponed: Vec<Skipped>,
    /// Whether there are captures that should have become codelets and did not.
    pub lost: bool,
    /// Codelets without a time in vivo, each with the reason.
    pub untimed: Vec<String>,
}

impl Outcome {
    fn add_missing(&mut self, choice: &Choice, missing: Missing) {
        let (reason, list) = match missing {
            Missing::Refused(reason) => (reason, &mut self.skipped),
            Missing::Postponed(reason) => (reason, &mut self.postponed),
            Missing::Lost(reason) => {
                self.lost = true;
                (reason, &mut self.skipped)
            }
        };
        list.push(Skipped {
            region: choice.name.clone(),
            reason,
            named: choice.named,
        });
    }
}

/// The input for making codelets.
struct Packing<'a> {
    store: &'a Store,
    runs: &'a Runs,
    choices: &'a [Choice],
    profile: Option<&'a Profile>,
    current: Current,
}

/// Packs every wanted invocation that was captured; gives the reason for the others.
pub fn pack_all(
    store: &Store,
    runs: &Runs,
    choices: &[Choice],
    profile: Option<&Profile>,
) -> Result<Outcome> {
    state::make_directory(&store.codelets())?;
    let packing = Packing {
        store,
        runs,
        choices,
        profile,
        current: Current::of(store)?,
    };
    let mut outcome = Outcome::default();
    let count: usize = choices.iter().map(|c| c.invocations.len()).sum();
    let bar = progress::bar("packing", count as u64);
    for choice in choices {
        for (invocation, represents) in &choice.invocations {
            bar.set_message(choice.name.clone());
            match packing.make(choice, *invocation, *represents) {
                Ok((listed, untimed)) => {
                    outcome
                        .untimed
                        .extend(untimed.map(|why| format!("{}: {why}", listed.name)));
                    outcome.codelets.push(listed);
                }
                Err(missing) => outcome.add_missing(choice, missing),
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    remove_replaced(store, choices, &outcome.codelets)?;
    Ok(outcome)
}

/// Removes older representatives of the regions that have new representatives in `new`.
fn remove_replaced(store: &Store, choices: &[Choice], new: &[Listed]) -> Result<()> {
    let represented = |key: &RegionKey| {
        let of = |c: &&Choice| c.key == *key && c.invocations.iter().any(|(_, r)| r.is_some());
        let choice = choices.iter().find(of);
        choice.is_some_and(|c| new.iter().any(|l| l.region == c.name))
    };
    for file in codelets::files(store)? {
        let kept = new.iter().any(|l| l.file == file);
        if let (false, Ok(manifest)) = (kept, read_manifest(&file))
            && manifest.represents.is_some()
            && represented(&manifest.key)
        {
            std::fs::remove_file(&file)
                .with_context(|| format!("cannot remove {}", file.display()))?;
        }
    }
    Ok(())
}

/// Why an invocation has no codelet.
enum Missing {
    /// It cannot have one.
    Refused(String),
    /// Other captures disturbed it.
    Postponed(String),
    /// It should have one.
    Lost(String),
}

impl Packing<'_> {
    /// Makes the codelet of one invocation. Also returns why its time in vivo is unknown, if it should be known.
    fn make(
        &self,
        choice: &Choice,
        invocation: u64,
        represents: Option<Represents>,
    ) -> Result<(Listed, Option<String>), Missing> {
        let (run, raw) = match self.runs.find(self.profile, &choice.key, invocation) {
            Some((run, Found::Raw(raw))) => (run, raw),
            Some((_, Found::Postponed(postponed))) => {
                let reason = self.runs.missed(postponed, |key| self.name(key));
                return Err(Missing::Postponed(reason));
            }
            None => return Err(self.missing(choice, invocation)),
        };
        if let Some(reason) = raw.capture.refused.clone() {
            return Err(Missing::Refused(reason));
        }
        let time = self.profile.map(|p| run.in_vivo(p, &raw.capture));
        let (in_vivo, untimed) = match time.transpose() {
            Ok(time) => (time, None),
            Err(why) => (None, Some(why)),
        };
        let name = format!("{}:{invocation}", choice.name);
        let destination = codelets::file_of(self.store, &name);
        let packed = pack(&PackInput {
            store: self.store,
            raw: &raw.path,
            region_name: &choice.name,
            name: &name,
            in_vivo,
            represents,
            destination: &destination,
        });
        let lost = |error: anyhow::Error| Missing::Lost(print::error(&error));
        let manifest = match packed {
            Ok(manifest) => manifest,
            Err(PackError::Refused { reason, .. }) => return Err(Missing::Refused(reason)),
            Err(error) => return Err(lost(error.into())),
        };
        // Frees the disk space of the raw capture, which may be large.
        for extension in ["table", "entry", "exit", "trace", "blocks"] {
            let _ = std::fs::remove_file(raw.path.with_extension(extension));
        }
        let current = self.current.holds(&manifest);
        let listed =
            Listed::of(&manifest, &destination, current, &Verdicts::default()).map_err(lost)?;
        Ok((listed, untimed))
    }

    fn name(&self, key: &RegionKey) -> String {
        let choice = self.choices.iter().find(|c| c.key == *key);
        choice.map_or_else(|| "a region".into(), |c| c.name.clone())
    }

    fn missing(&self, choice: &Choice, invocation: u64) -> Missing {
        let entered = self.runs.entered(&choice.key);
        let ran = entered.or_else(|| Some(invocations_in(self.profile?, &choice.key)));
        let reason = match ran {
            None => format!("invocation {invocation} never came"),
            Some(0) => self
                .profile
                .map_or("it never ran with these arguments", never_ran)
                .into(),
            Some(ran) if ran < invocation => {
                format!("invocation {invocation} never came: it ran {ran} times")
            }
            Some(_) => {
                return Missing::Lost(
                    "its capture did not reach the disk: see the messages of the run".into(),
                );
            }
        };
        Missing::Refused(reason)
    }
}
