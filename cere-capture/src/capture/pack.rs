//! Makes codelets from raw captures, several at a time, and while the program still runs.

use super::choose::{Choice, Skipped, never_ran};
use super::runs::{Found, Raw, Run, Runs};
use super::threads;
use anyhow::{Context, Result};
use cere_format::package::{CapturedRun, Represents};
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_package::io::read_manifest;
use cere_package::{PackError, PackInput, pack};
use cere_store::built::Current;
use cere_store::codelets::{Listed, Verdicts};
use cere_store::{codelets, state};
use cere_system::console::print;
use cere_system::events::Events;
use cere_toolchain::several::at_most;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

/// Packages made at a time: each takes a window of the compressor, 128 MiB, and some more.
const AT_A_TIME: usize = 8;
/// Between looks at what a run has captured.
const PAUSE: Duration = Duration::from_millis(20);

/// A new codelet, and why its time in vivo is unknown, if it should be known.
type Packed = (Listed, Option<String>);

/// Makes the codelets of one command.
pub struct Packing<'a> {
    store: &'a Store,
    choices: &'a [Choice],
    profile: Option<&'a Profile>,
    run: &'a CapturedRun,
    /// Whether the names of codelets tell the rank.
    by_rank: bool,
    current: Current,
    /// Those made while the program ran, by the metadata of the raw capture.
    early: Mutex<HashMap<PathBuf, Packed>>,
}

/// A wanted invocation.
struct Wanted<'a> {
    choice: &'a Choice,
    invocation: u64,
    represents: Option<Represents>,
}

impl<'a> Packing<'a> {
    /// Of the wanted invocations of `run`, with times from `profile`.
    pub fn of(
        store: &'a Store,
        run: &'a CapturedRun,
        by_rank: bool,
        choices: &'a [Choice],
        profile: Option<&'a Profile>,
    ) -> Result<Self> {
        state::make_directory(&store.codelets())?;
        Ok(Self {
            store,
            choices,
            profile,
            run,
            by_rank,
            current: Current::of(store)?,
            early: Mutex::default(),
        })
    }

    fn wanted(&self) -> impl Iterator<Item = Wanted<'a>> {
        self.choices.iter().flat_map(|choice| {
            let all = choice.invocations.iter();
            all.map(move |(invocation, represents)| Wanted {
                choice,
                invocation: *invocation,
                represents: *represents,
            })
        })
    }

    /// Packs what the profiled process of a run in progress has captured, one after the other, until the run is `over`. What
    /// fails is tried again at the end.
    pub fn follow(&self, directory: &Path, over: &AtomicBool) {
        let mut seen = HashSet::new();
        while !over.load(Ordering::Relaxed) {
            if let Some(run) = Run::with_new_captures(directory, &seen) {
                for raw in run.new_captures(self.profile, &mut seen) {
                    let of = |w: &Wanted| w.choice.is_of(&raw.capture, w.invocation);
                    if !over.load(Ordering::Relaxed)
                        && let Some(wanted) = self.wanted().find(of)
                        && let Ok(packed) = self.pack(&run, raw, &wanted)
                        && let Ok(mut early) = self.early.lock()
                    {
                        early.insert(raw.path.clone(), packed);
                    }
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Packs every wanted invocation that was captured; gives the reason for the others.
    pub fn make_all(&self, runs: &Runs, events: &Events) -> Result<Outcome> {
        let wanted: Vec<Wanted> = self.wanted().collect();
        let progress = events.steps("packing", wanted.len() as u64);
        let made = at_most(AT_A_TIME, wanted.len(), |number| {
            progress.at(&wanted[number].choice.name);
            let made = self.make(runs, &wanted[number]);
            progress.step();
            made
        });
        drop(progress);
        let mut outcome = Outcome::default();
        for (wanted, made) in wanted.iter().zip(made) {
            match made {
                Ok((listed, untimed)) => {
                    outcome
                        .untimed
                        .extend(untimed.map(|why| format!("{}: {why}", listed.name)));
                    outcome.codelets.push(listed);
                }
                Err(missing) => outcome.add_missing(wanted.choice, missing),
            }
        }
        self.remove_replaced(&outcome.codelets)?;
        Ok(outcome)
    }

    /// Removes older representatives, of the same rank, of the regions that have new representatives in `new`.
    fn remove_replaced(&self, new: &[Listed]) -> Result<()> {
        let represented = |key: &RegionKey| {
            let of = |c: &&Choice| c.key == *key && c.invocations.iter().any(|(_, r)| r.is_some());
            let choice = self.choices.iter().find(of);
            choice.is_some_and(|c| new.iter().any(|l| l.region == c.name))
        };
        let same = |run: &CapturedRun| !self.by_rank || run.rank == self.run.rank;
        for file in codelets::files(self.store)? {
            let kept = new.iter().any(|l| l.file == file);
            if let (false, Ok(manifest)) = (kept, read_manifest(&file))
                && manifest.represents.is_some()
                && manifest.run.as_ref().is_none_or(same)
                && represented(&manifest.key)
            {
                std::fs::remove_file(&file)
                    .with_context(|| format!("cannot remove {}", file.display()))?;
            }
        }
        Ok(())
    }
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
    /// The codelet of one invocation.
    fn make(&self, runs: &Runs, wanted: &Wanted) -> Result<Packed, Missing> {
        let (choice, invocation) = (wanted.choice, wanted.invocation);
        let (run, raw) = match runs.find(self.profile, choice, invocation) {
            Some((run, Found::Raw(raw))) => (run, raw),
            Some((_, Found::Postponed(postponed))) => {
                let reason = runs.missed(postponed, |key| self.name(key));
                return Err(Missing::Postponed(reason));
            }
            None => return Err(self.missing(runs, choice, invocation)),
        };
        let early = self.early.lock().ok();
        match early.and_then(|mut early| early.remove(&raw.path)) {
            Some(packed) => Ok(packed),
            None => self.pack(run, raw, wanted),
        }
    }

    fn pack(&self, run: &Run, raw: &Raw, wanted: &Wanted) -> Result<Packed, Missing> {
        let choice = wanted.choice;
        if let Some(reason) = raw.capture.refused.clone() {
            return Err(Missing::Refused(reason));
        }
        let time = self.profile.map(|p| run.in_vivo(p, &raw.capture));
        let (in_vivo, untimed) = match time.transpose() {
            Ok(time) => (time, None),
            Err(why) => (None, Some(why.to_string())),
        };
        let rank = self.run.rank.as_ref().filter(|_| self.by_rank);
        let rank = rank.map_or(String::new(), |rank| format!(".r{rank}"));
        let thread = (choice.thread != 0)
            .then(|| threads::describe(self.profile, &choice.key, choice.thread));
        let of_thread = thread.map_or(String::new(), |thread| format!(".t{}", thread.number));
        let name = format!("{}:{}{of_thread}{rank}", choice.name, wanted.invocation);
        let destination = codelets::file_of(self.store, &name);
        let packed = pack(&PackInput {
            store: self.store,
            raw: &raw.path,
            region_name: &choice.name,
            name: &name,
            run: Some(self.run),
            thread,
            in_vivo,
            represents: wanted.represents,
            destination: &destination,
        });
        let lost = |error: anyhow::Error| Missing::Lost(print::error(&error));
        let manifest = match packed {
            Ok(manifest) => manifest,
            Err(PackError::Refused { reason, .. }) => return Err(Missing::Refused(reason)),
            Err(error) => return Err(lost(error.into())),
        };
        // Frees the disk space of the raw capture, which may be large. Its table keeps its number from the captures to come.
        for extension in ["places", "pages", "trace", "blocks"] {
            let _ = std::fs::remove_file(raw.path.with_extension(extension));
        }
        let current = self.current.holds(&manifest);
        let listed = Listed::of(
            &manifest,
            &destination,
            (current, Vec::new()),
            &Verdicts::default(),
        );
        let listed = listed.map_err(lost)?;
        Ok((listed, untimed))
    }

    fn name(&self, key: &RegionKey) -> String {
        let choice = self.choices.iter().find(|c| c.key == *key);
        choice.map_or_else(|| "a region".into(), |c| c.name.clone())
    }

    fn missing(&self, runs: &Runs, choice: &Choice, invocation: u64) -> Missing {
        let entered = runs.entered(choice);
        if let Some(ran) = entered.filter(|ran| choice.thread != 0 && *ran < invocation) {
            let thread = choice.thread;
            return Missing::Refused(format!(
                "invocation {invocation} never came: thread {thread} entered it {ran} times"
            ));
        }
        let ran = entered.or_else(|| Some(invocations_in(self.profile?, &choice.key)));
        let profiled = self.profile.map(|p| p.entries_elsewhere(&choice.key));
        let elsewhere = runs
            .entered_elsewhere(&choice.key)
            .max(profiled.unwrap_or(0));
        let reason = match ran {
            None => format!("invocation {invocation} never came"),
            Some(0) => never_ran(elsewhere),
            Some(ran) if ran < invocation && elsewhere > 0 => format!(
                "invocation {invocation} never came: it ran {ran} times in the program's first thread, and {elsewhere} times in others, which --thread names"
            ),
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
