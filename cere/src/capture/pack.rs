//! From a run's raw captures to codelets.

use super::choose::{Choice, Skipped};
use super::times;
use crate::codelets::{self, Listed};
use crate::current::Current;
use crate::{progress, state};
use anyhow::{Context, Result};
use cere_format::capture::RawCapture;
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_package::{PackInput, pack};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A raw capture in a run's directory.
struct Raw {
    path: PathBuf,
    capture: RawCapture,
}

/// How often a wanted region was entered while it was armed: `counts.json` of a run.
#[derive(Deserialize)]
struct Count {
    key: RegionKey,
    invocations: u64,
}

/// What a capture run left.
pub struct Run {
    raws: Vec<Raw>,
    counts: Vec<Count>,
}

impl Run {
    /// Reads the run's directory.
    pub fn read(directory: &Path) -> Result<Self> {
        let mut raws = Vec::new();
        let entries = std::fs::read_dir(directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|s| s.to_str());
            let numbered = stem.is_some_and(|s| s.parse::<u64>().is_ok());
            if numbered && path.extension().is_some_and(|e| e == "json") {
                let capture = state::read_json(&path)?;
                raws.push(Raw { path, capture });
            }
        }
        // A program that was killed leaves none.
        let counts = state::read_json(&directory.join("counts.json")).unwrap_or_default();
        Ok(Self { raws, counts })
    }

    /// Whether a codelet can be made of anything.
    pub fn usable(&self) -> bool {
        self.raws.iter().any(|r| r.capture.refused.is_none())
    }

    fn entered(&self, key: &RegionKey) -> Option<u64> {
        let count = self.counts.iter().find(|c| c.key == *key)?;
        Some(count.invocations)
    }
}

/// How often a region ran in the profile.
fn ran(profile: &Profile, key: &RegionKey) -> Option<u64> {
    let region = profile.regions.iter().find(|r| r.key == *key);
    Some(region.map_or(0, |r| r.invocations))
}

/// What became of the wanted invocations.
pub struct Outcome {
    /// New codelets.
    pub codelets: Vec<Listed>,
    /// What there is none of, and why.
    pub skipped: Vec<Skipped>,
    /// Captures that should be there and are not.
    pub lost: bool,
    /// Codelets without a time in vivo, each with the reason.
    pub untimed: Vec<String>,
}

/// Packs every wanted invocation that was captured, and says why for the others.
pub fn all(
    store: &Store,
    run: &Run,
    choices: &[Choice],
    invocations: &[u64],
    profile: Option<&Profile>,
) -> Result<Outcome> {
    state::make_directory(&store.codelets())?;
    let current = Current::of(store)?;
    let mut outcome = Outcome {
        codelets: Vec::new(),
        skipped: Vec::new(),
        lost: false,
        untimed: Vec::new(),
    };
    let bar = progress::bar("packing", (choices.len() * invocations.len()) as u64);
    for choice in choices {
        for invocation in invocations {
            bar.set_message(choice.name.clone());
            let raw = run
                .raws
                .iter()
                .find(|r| r.capture.key == choice.key && r.capture.invocation == *invocation);
            let made = match raw {
                None => {
                    let ran = run
                        .entered(&choice.key)
                        .or_else(|| ran(profile?, &choice.key));
                    let (reason, lost) = missing(*invocation, ran);
                    outcome.lost |= lost;
                    Err(reason)
                }
                Some(Raw { capture, .. }) if capture.refused.is_some() => {
                    Err(capture.refused.clone().unwrap_or_default())
                }
                Some(raw) => one(store, raw, choice, profile, &current)?,
            };
            match made {
                Ok(listed) => {
                    if let (None, Some(profile)) = (listed.in_vivo_seconds, profile)
                        && let Err(why) = times::in_vivo(profile, &choice.key, *invocation)
                    {
                        outcome.untimed.push(format!("{}: {why}", listed.name));
                    }
                    outcome.codelets.push(listed);
                }
                Err(reason) => outcome.skipped.push(Skipped {
                    region: choice.name.clone(),
                    reason,
                    named: choice.named,
                }),
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(outcome)
}

/// Why there is no raw capture of an invocation, and whether there should be one. `ran` tells how often the region
/// was entered, if that is known.
fn missing(invocation: u64, ran: Option<u64>) -> (String, bool) {
    match ran {
        None => (format!("invocation {invocation} never came"), false),
        Some(0) => ("it never ran with these arguments".into(), false),
        Some(ran) if ran < invocation => (
            format!("invocation {invocation} never came: it ran {ran} times"),
            false,
        ),
        Some(_) => (
            "its capture did not reach the disk: see the messages of the run".into(),
            true,
        ),
    }
}

/// Packs one; the inner error is a reason that concerns this region alone.
fn one(
    store: &Store,
    raw: &Raw,
    choice: &Choice,
    profile: Option<&Profile>,
    current: &Current,
) -> Result<Result<Listed, String>> {
    let invocation = raw.capture.invocation;
    let name = format!("{}:{invocation}", choice.name);
    let destination = codelets::file_of(store, &name);
    let packed = pack(&PackInput {
        store,
        raw: &raw.path,
        region_name: &choice.name,
        name: &name,
        in_vivo: profile.and_then(|p| times::in_vivo(p, &choice.key, invocation).ok()),
        destination: &destination,
    });
    let manifest = match packed {
        Ok(manifest) => manifest,
        Err(cere_package::PackError::Refused { reason, .. }) => return Ok(Err(reason)),
        Err(error) => return Err(error).with_context(|| format!("no codelet was made of {name}")),
    };
    // The verdict was one on the file that is replaced.
    let _ = std::fs::remove_file(codelets::verdict_of(&destination));
    // A large region's pages need not lie there twice.
    for extension in ["table", "entry", "exit"] {
        let _ = std::fs::remove_file(raw.path.with_extension(extension));
    }
    Ok(Ok(Listed::of(&manifest, &destination, current)?))
}
