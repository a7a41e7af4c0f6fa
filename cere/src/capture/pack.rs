//! From a run's raw captures to codelets.

use super::choose::{Choice, Skipped, never_ran};
use super::times;
use crate::codelets::{self, Listed};
use crate::current::Current;
use crate::processes::Processes;
use crate::{print, progress, state};
use anyhow::{Context, Result};
use cere_format::capture::RawCapture;
use cere_format::package::{InVivo, Represents};
use cere_format::profile::{ProcessName, Profile, RegionKey};
use cere_format::store::Store;
use cere_package::io::read_manifest;
use cere_package::{PackError, PackInput, pack};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A raw capture in a run's directory.
struct Raw {
    path: PathBuf,
    capture: RawCapture,
}

/// How often a wanted region was entered while it was armed: `counts.<number>.json` of a run.
#[derive(Deserialize)]
struct Count {
    key: RegionKey,
    invocations: u64,
}

/// What a capture run left.
pub struct Run {
    processes: Processes,
    /// By the number of their process.
    raws: Vec<Raw>,
    counts: Vec<Count>,
}

impl Run {
    /// Reads the run's directory.
    pub fn read(directory: &Path) -> Result<Self> {
        let (mut raws, mut counts) = (Vec::new(), Vec::new());
        let entries = std::fs::read_dir(directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|e| e != "json") {
                continue;
            }
            let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
            if stem.parse::<u64>().is_ok() {
                let capture: RawCapture = state::read_json(&path)?;
                raws.push(Raw { path, capture });
            } else if stem.starts_with("counts.") {
                counts.append(&mut state::read_json(&path)?);
            }
        }
        raws.sort_by_key(|raw| raw.capture.process);
        Ok(Self {
            processes: Processes::read(directory)?,
            raws,
            counts,
        })
    }

    /// Whether a codelet can be made of anything.
    pub fn usable(&self) -> bool {
        self.raws.iter().any(|r| r.capture.refused.is_none())
    }

    /// The most often that a process entered the region. One that was killed does not tell.
    fn entered(&self, key: &RegionKey) -> Option<u64> {
        let counts = self.counts.iter().filter(|c| c.key == *key);
        counts.map(|c| c.invocations).max()
    }

    /// The capture of an invocation: the one taken in the process that `profile` is of, else in the first process.
    fn raw(&self, profile: Option<&Profile>, key: &RegionKey, invocation: u64) -> Option<&Raw> {
        let mut all = self
            .raws
            .iter()
            .filter(|r| r.capture.key == *key && r.capture.invocation == invocation);
        let main = profile.and_then(|p| self.processes.find(&p.process));
        let preferred =
            main.and_then(|main| all.clone().find(|r| r.capture.process == main.number));
        preferred.or_else(|| all.next())
    }

    /// The time of a captured invocation in `profile`, or why it is not known.
    fn in_vivo(&self, profile: &Profile, capture: &RawCapture) -> Result<InVivo, String> {
        let process = self.processes.by_number(capture.process);
        let name = process.map(|p| self.processes.name(p)).unwrap_or_default();
        if name != profile.process {
            let shown = |name: &ProcessName| name.arguments.join(" ");
            return Err(format!(
                "it was captured in another process of the run ({}) than the one that was profiled ({})",
                shown(&name),
                shown(&profile.process)
            ));
        }
        times::of_capture(profile, capture)
    }
}

/// How often a region ran in the profile.
fn ran(profile: &Profile, key: &RegionKey) -> u64 {
    let region = profile.region(key);
    region.map_or(0, |r| r.invocations)
}

/// What became of the wanted invocations.
#[derive(Default)]
pub struct Outcome {
    /// New codelets.
    pub codelets: Vec<Listed>,
    /// What there is none of, and why.
    pub skipped: Vec<Skipped>,
    /// Whether there are captures that should have become codelets and did not.
    pub lost: bool,
    /// Codelets without a time in vivo, each with the reason.
    pub untimed: Vec<String>,
}

/// What there is to make codelets with.
struct Packing<'a> {
    store: &'a Store,
    run: &'a Run,
    profile: Option<&'a Profile>,
    current: Current,
}

/// Packs every wanted invocation that was captured, and says why for the others.
pub fn all(
    store: &Store,
    run: &Run,
    choices: &[Choice],
    profile: Option<&Profile>,
) -> Result<Outcome> {
    state::make_directory(&store.codelets())?;
    let packing = Packing {
        store,
        run,
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
                Err(Missing { reason, lost }) => {
                    outcome.lost |= lost;
                    outcome.skipped.push(Skipped {
                        region: choice.name.clone(),
                        reason,
                        named: choice.named,
                    });
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    replace(store, choices, &outcome.codelets)?;
    Ok(outcome)
}

/// Removes the codelets that an earlier capture took as representatives of regions that `new` has representatives of.
fn replace(store: &Store, choices: &[Choice], new: &[Listed]) -> Result<()> {
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
            let _ = std::fs::remove_file(codelets::verdict_of(&file));
        }
    }
    Ok(())
}

/// Why there is no codelet of an invocation, and whether there should be one.
struct Missing {
    reason: String,
    lost: bool,
}

impl Packing<'_> {
    /// Makes the codelet of one invocation; gives with it why its time in vivo is not known, if it should be.
    fn make(
        &self,
        choice: &Choice,
        invocation: u64,
        represents: Option<Represents>,
    ) -> Result<(Listed, Option<String>), Missing> {
        let Some(raw) = self.run.raw(self.profile, &choice.key, invocation) else {
            return Err(self.missing(choice, invocation));
        };
        if let Some(reason) = raw.capture.refused.clone() {
            return Err(Missing {
                reason,
                lost: false,
            });
        }
        let time = self.profile.map(|p| self.run.in_vivo(p, &raw.capture));
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
        let lost = |error: anyhow::Error| Missing {
            reason: print::error(&error),
            lost: true,
        };
        let manifest = match packed {
            Ok(manifest) => manifest,
            Err(PackError::Refused { reason, .. }) => {
                return Err(Missing {
                    reason,
                    lost: false,
                });
            }
            Err(error) => return Err(lost(error.into())),
        };
        // The verdict was one on the file that is replaced.
        let _ = std::fs::remove_file(codelets::verdict_of(&destination));
        // A large region's pages need not lie there twice.
        for extension in ["table", "entry", "exit", "trace", "blocks"] {
            let _ = std::fs::remove_file(raw.path.with_extension(extension));
        }
        let listed = Listed::of(&manifest, &destination, &self.current).map_err(lost)?;
        Ok((listed, untimed))
    }

    fn missing(&self, choice: &Choice, invocation: u64) -> Missing {
        let entered = self.run.entered(&choice.key);
        let ran = entered.or_else(|| Some(ran(self.profile?, &choice.key)));
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
                return Missing {
                    reason: "its capture did not reach the disk: see the messages of the run"
                        .into(),
                    lost: true,
                };
            }
        };
        Missing {
            reason,
            lost: false,
        }
    }
}
