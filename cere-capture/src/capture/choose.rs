//! Chooses the regions of a capture run.

use super::threads;
use crate::classes;
use crate::selection::Selection;
use crate::whole::over_all_threads;
use anyhow::Result;
use cere_cluster::ClassError;
use cere_format::capture::{Postponed, RawCapture};
use cere_format::package::Represents;
use cere_format::profile::{Profile, RegionKey};
use cere_store::names::{Named, is_glob, pick_in};
use std::collections::{BTreeMap, HashSet};

/// A region that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub key: RegionKey,
    /// The thread whose invocations are meant, by its number among those that were started; 0: the first one.
    pub thread: u64,
    /// Whether the user named it: then a missing codelet is an error.
    pub named: bool,
    /// The wanted invocations, rising, each with the class that it represents, if any.
    pub invocations: Vec<(u64, Option<Represents>)>,
}

impl Choice {
    /// Whether a capture is of this invocation.
    pub fn is_of(&self, capture: &RawCapture, invocation: u64) -> bool {
        (&capture.key, capture.thread, capture.invocation) == (&self.key, self.thread, invocation)
    }

    /// Whether this invocation was postponed.
    pub fn is_postponed(&self, one: &Postponed, invocation: u64) -> bool {
        (&one.key, one.thread, one.invocation) == (&self.key, self.thread, invocation)
    }
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

/// The regions that match `patterns`. Regions that were not outlined are skipped, with a message if they were named and
/// silently if a glob matched them. `held` are the units that the program may load.
pub fn by_pattern(
    all: &[Named],
    patterns: &[String],
    held: Option<&HashSet<String>>,
) -> Result<(Vec<Choice>, Vec<Skipped>)> {
    let mut picked: BTreeMap<usize, bool> = BTreeMap::new();
    for pattern in patterns {
        for index in pick_in(all, held, pattern)? {
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
                thread: 0,
                named,
                invocations: Vec::new(),
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

/// The regions of `profile` that matter, and those skipped because their invocations are too short.
fn by_profile(profile: &Profile) -> Result<(Vec<Choice>, Vec<Skipped>)> {
    let profile = over_all_threads(profile);
    let selection = Selection::of(&profile)?;
    let choices = selection.kept.iter().map(|kept| {
        let region = &profile.regions[kept.region];
        Choice {
            name: region.name.clone(),
            key: region.key.clone(),
            thread: 0,
            named: false,
            invocations: Vec::new(),
        }
    });
    let skipped = selection.short.iter().map(|(region, why)| Skipped {
        region: profile.regions[*region].name.clone(),
        reason: why.to_string(),
        named: false,
    });
    Ok((choices.collect(), skipped.collect()))
}

/// What the command line asks for.
pub struct Wish {
    /// The regions that it names, and those of them that cannot have codelets.
    pub named: Option<(Vec<Choice>, Vec<Skipped>)>,
    /// The invocations that it lists.
    pub list: Option<Vec<u64>>,
    /// The thread that it names; none: the first one where that enters the region, else the one with most time in it.
    pub thread: Option<u64>,
}

impl Wish {
    /// Regions with their invocations. What is not listed is chosen from `profile`; `None` if that is needed and missing.
    pub fn choices(&self, profile: Option<&Profile>) -> Result<(Vec<Choice>, Vec<Skipped>)> {
        let (mut choices, mut skipped) = match (&self.named, profile) {
            (Some(named), _) => named.clone(),
            (None, Some(profile)) => by_profile(profile)?,
            (None, None) => Default::default(),
        };
        match (&self.list, profile) {
            (Some(list), _) => {
                for choice in &mut choices {
                    choice.thread = self.thread_of(profile, &choice.key);
                    choice.invocations = list.iter().map(|i| (*i, None)).collect();
                }
            }
            (None, Some(profile)) => {
                for choice in &mut choices {
                    choice.thread = self.thread_of(Some(profile), &choice.key);
                }
                skipped.append(&mut choose_representatives(&mut choices, profile))
            }
            (None, None) => choices.clear(),
        }
        Ok((choices, skipped))
    }

    /// The thread whose invocations of a region are meant.
    fn thread_of(&self, profile: Option<&Profile>, key: &RegionKey) -> u64 {
        self.thread.unwrap_or_else(|| {
            let first = |p: &Profile| p.region(key).is_some();
            let other = profile.filter(|p| !first(p));
            other
                .and_then(|p| threads::representative(p, key))
                .map_or(0, |found| found.0)
        })
    }

    /// Whether it needs no profile.
    pub fn needs_no_profile(&self) -> bool {
        self.named.is_some() && self.list.is_some()
    }
}

/// Why a region has no invocation in the program's first thread, if other threads entered it so many times.
pub fn never_ran(elsewhere: u64) -> String {
    match elsewhere {
        0 => "it never ran with these arguments".into(),
        _ => format!(
            "it ran in threads other than the program's first alone ({elsewhere} times): name one by --thread"
        ),
    }
}

/// The invocation that is captured in a thread other than the first.
fn of_thread(profile: &Profile, choice: &Choice) -> Result<Vec<(u64, Option<Represents>)>, String> {
    match threads::representative(profile, &choice.key) {
        Some((thread, invocation, represents)) if thread == choice.thread => {
            Ok(vec![(invocation, Some(represents))])
        }
        // Another one than that with the most time: it stands for nothing else.
        _ => match threads::middle(profile, &choice.key, choice.thread) {
            Some(invocation) => Ok(vec![(invocation, None)]),
            None => Err(format!(
                "thread {} did not enter it in the profile's run",
                choice.thread
            )),
        },
    }
}

/// Requests the representatives of every region from `profile`. Returns the regions without any, with the reason.
fn choose_representatives(choices: &mut Vec<Choice>, profile: &Profile) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    choices.retain_mut(|choice| {
        let found = match profile.region(&choice.key) {
            _ if choice.thread != 0 => of_thread(profile, choice),
            None => Err(never_ran(profile.entries_elsewhere(&choice.key))),
            Some(region) => match classes::representatives(region) {
                // No invocation finished, or all are too short: any one will do.
                Err(ClassError::NoTimes) => Ok(vec![(1, None)]),
                Err(error) => Err(error.to_string()),
                Ok(found) => Ok(found.into_iter().map(|(i, r)| (i, Some(r))).collect()),
            },
        };
        match found {
            Ok(found) => choice.invocations = found,
            Err(reason) => skipped.push(Skipped {
                region: choice.name.clone(),
                reason,
                named: choice.named,
            }),
        }
        !choice.invocations.is_empty()
    });
    skipped
}
