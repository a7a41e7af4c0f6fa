//! The runs of the program that one capture command needs.
//!
//! Captures of one run are not nested, because inside a captured invocation `malloc` is not the program's. A run postpones
//! such invocations, and another run captures them.

use super::choose::Choice;
use super::times;
use super::untimed::Untimed;
use crate::launch::Finished;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::capture::{Conflict, Postponed, RawCapture};
use cere_format::package::InVivo;
use cere_format::profile::{ProcessName, Profile, RegionKey};
use cere_store::processes::Processes;
use cere_store::state;
use cere_system::console::print;
use cere_system::events::Events;
use serde::Deserialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A raw capture in a run's directory.
pub struct Raw {
    /// Its metadata's file.
    pub path: PathBuf,
    /// Its metadata.
    pub capture: RawCapture,
}

/// How often a wanted region was entered while it was armed: `counts.<number>.json` of a run.
#[derive(Deserialize)]
struct Count {
    key: RegionKey,
    /// The thread that entered it, as [`Choice::thread`].
    #[serde(default)]
    thread: u64,
    invocations: u64,
    /// Likewise by threads other than the first, outside teams.
    #[serde(default)]
    elsewhere: u64,
}

/// The results of a capture run.
pub struct Run {
    processes: Processes,
    raws: Vec<Raw>,
    counts: Vec<Count>,
    postponed: Vec<Postponed>,
}

/// The outcome of a wanted invocation that was reached.
pub enum Found<'a> {
    /// It was captured, or refused.
    Raw(&'a Raw),
    /// Another run has to capture it.
    Postponed(&'a Postponed),
}

impl Run {
    /// Reads the run's directory.
    fn read(directory: &Path) -> Result<Self> {
        let (mut raws, mut counts, mut postponed) = (Vec::new(), Vec::new(), Vec::new());
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
            } else if stem.starts_with("postponed.") {
                let text = std::fs::read(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                // A process that was killed may have cut its last line.
                let lines = serde_json::Deserializer::from_slice(&text).into_iter::<Postponed>();
                postponed.extend(lines.map_while(Result::ok));
            }
        }
        Ok(Self {
            processes: Processes::read(directory)?,
            raws,
            counts,
            postponed,
        })
    }

    /// The results so far of a run in progress, if it has captures that are not `seen`. None if they cannot be read yet.
    pub fn with_new_captures(directory: &Path, seen: &HashSet<PathBuf>) -> Option<Self> {
        let mut entries = std::fs::read_dir(directory).ok()?.flatten();
        let new = |path: &PathBuf| {
            let number = path
                .file_stem()
                .and_then(|s| s.to_str()?.parse::<u64>().ok());
            path.extension().is_some_and(|e| e == "json")
                && number.is_some()
                && !seen.contains(path)
        };
        entries.any(|entry| new(&entry.path())).then_some(())?;
        Self::read(directory).ok()
    }

    /// The captures that are not `seen`, which become that, of the process that was profiled.
    pub fn new_captures(
        &self,
        profile: Option<&Profile>,
        seen: &mut HashSet<PathBuf>,
    ) -> Vec<&Raw> {
        let main = profile.and_then(|p| self.processes.find(&p.process));
        let of_main = |raw: &&Raw| main.is_some_and(|main| main.number == raw.capture.process);
        let new = self.raws.iter().filter(|raw| seen.insert(raw.path.clone()));
        new.filter(of_main).collect()
    }

    /// The most often that the thread of a process entered the region. One that was killed does not tell.
    fn entered(&self, choice: &Choice) -> Option<u64> {
        let same = |c: &&Count| c.key == choice.key && c.thread == choice.thread;
        let counts = self.counts.iter().filter(same);
        counts.map(|c| c.invocations).max()
    }

    /// The most often that threads other than the first of a process entered the region.
    fn entered_elsewhere(&self, key: &RegionKey) -> u64 {
        let counts = self.counts.iter().filter(|c| c.key == *key);
        counts.map(|c| c.elsewhere).max().unwrap_or(0)
    }

    /// The outcome of an invocation: in the process of `profile`, else in the first process that reached it.
    fn find(
        &self,
        profile: Option<&Profile>,
        choice: &Choice,
        invocation: u64,
    ) -> Option<Found<'_>> {
        let raws = self.raws.iter();
        let raws = raws.filter(|r| choice.is_of(&r.capture, invocation));
        let raws = raws.map(|r| (r.capture.process, Found::Raw(r)));
        let postponed = self.postponed.iter();
        let postponed = postponed.filter(|p| choice.is_postponed(p, invocation));
        let postponed = postponed.map(|p| (p.process, Found::Postponed(p)));
        let main = profile.and_then(|p| self.processes.find(&p.process));
        let preferred = |process: u32| main.is_some_and(|main| main.number == process);
        let found = raws.chain(postponed);
        let found = found.min_by_key(|(process, _)| (!preferred(*process), *process));
        found.map(|(_, found)| found)
    }

    /// The part of `choices` that another run has to capture.
    fn remaining(&self, choices: &[Choice]) -> Vec<Choice> {
        let mut left = choices.to_vec();
        for choice in &mut left {
            let of = choice.clone();
            let is = |p: &Postponed, i: u64| of.is_postponed(p, i);
            let postponed = |(i, _): &(u64, _)| self.postponed.iter().any(|p| is(p, *i));
            choice.invocations.retain(postponed);
        }
        left.retain(|choice| !choice.invocations.is_empty());
        left
    }

    /// How many invocations the captures of this run disturbed, and how.
    fn why(&self) -> String {
        let texts = [
            (Conflict::Inside, "inside one"),
            (Conflict::Trace, "with a page trace through one"),
            (Conflict::Memory, "without memory that one gave back"),
            (Conflict::Blocks, "beside blocks that one allocated"),
        ];
        let counted = texts.into_iter().filter_map(|(conflict, text)| {
            let of = self.postponed.iter().filter(|p| p.conflict == conflict);
            Some(of.count())
                .filter(|n| *n > 0)
                .map(|n| format!("{n} {text}"))
        });
        counted.collect::<Vec<_>>().join(", ")
    }

    /// The time of a captured invocation in `profile`.
    pub fn in_vivo(&self, profile: &Profile, capture: &RawCapture) -> Result<InVivo, Untimed> {
        let process = self.processes.by_number(capture.process);
        if process.is_some_and(|p| self.processes.is_chance(p)) {
            return Err(Untimed::Chance);
        }
        let name = process.map(|p| self.processes.name(p)).unwrap_or_default();
        if name != profile.process {
            let shown = |name: &ProcessName| name.arguments.join(" ");
            return Err(Untimed::OtherProcess {
                captured: shown(&name),
                profiled: shown(&profile.process),
            });
        }
        times::of_capture(profile, capture)
    }
}

/// All runs for one command.
pub struct Runs {
    runs: Vec<Run>,
    /// How the first run ended; its output is shown.
    pub first: Finished,
    /// The later runs, whose directories hold their results.
    later: Vec<Finished>,
    /// Why not all needed runs came to their end, if so.
    pub cut: Option<String>,
}

impl Runs {
    /// Calls `run` for `choices`, then, without output, for what remains, until nothing remains.
    pub fn make(
        choices: &[Choice],
        events: &Events,
        mut run: impl FnMut(&[Choice], bool) -> Result<Finished>,
    ) -> Result<Self> {
        let first = run(choices, true)?;
        let mut all = Self {
            runs: vec![Run::read(first.directory.path())?],
            cut: first.late.clone(),
            first,
            later: Vec::new(),
        };
        let mut left = all.runs[0].remaining(choices);
        while all.cut.is_none() && !left.is_empty() {
            match all.go_on(&left, events, &mut run) {
                Ok(now) => left = now,
                Err(error) => all.cut = Some(print::error(&error)),
            }
        }
        Ok(all)
    }

    /// Runs the program for what remains. Returns what remains after that.
    fn go_on(
        &mut self,
        left: &[Choice],
        events: &Events,
        run: &mut impl FnMut(&[Choice], bool) -> Result<Finished>,
    ) -> Result<Vec<Choice>> {
        if let Some(told) = &self.first.told {
            bail!("{told}");
        }
        let (before, number) = (self.runs.len(), self.runs.len() + 1);
        let why = self.runs[before - 1].why();
        events.note(format!(
            "run {number}, without output, for invocations that captures of run {before} disturb: {why}"
        ));
        let finished = run(left, false)?;
        if finished.status != self.first.status {
            events.warning(format!(
                "run {number} ended with {}, the first one with {}",
                finished.status, self.first.status
            ));
        }
        let cut = finished.late.clone().or_else(|| finished.told.clone());
        let run = Run::read(finished.directory.path())?;
        let now = run.remaining(left);
        self.runs.push(run);
        self.later.push(finished);
        match cut {
            Some(why) => bail!("{why}"),
            None if now == left => bail!(
                E3017,
                "run {number} of the program did not reach the invocations that were left: does it do the same each time? Name them one by one with --invocation"
            ),
            None => Ok(now),
        }
    }

    /// Whether any capture can become a codelet.
    pub fn usable(&self) -> bool {
        let captured = |run: &Run| run.raws.iter().any(|r| r.capture.refused.is_none());
        self.runs.iter().any(captured)
    }

    /// The most often that the thread of a process of the first run entered the region. One that was killed does not tell.
    pub fn entered(&self, choice: &Choice) -> Option<u64> {
        self.runs[0].entered(choice)
    }

    /// The most often that threads other than the first of a process of the first run entered the region.
    pub fn entered_elsewhere(&self, key: &RegionKey) -> u64 {
        self.runs[0].entered_elsewhere(key)
    }

    /// The outcome of an invocation in the last run that reached it.
    pub fn find(
        &self,
        profile: Option<&Profile>,
        choice: &Choice,
        invocation: u64,
    ) -> Option<(&Run, Found<'_>)> {
        let found = |run| Some((run, Run::find(run, profile, choice, invocation)?));
        self.runs.iter().rev().find_map(found)
    }

    /// Why no run captured a postponed invocation; `name` gives names of regions.
    pub fn missed(&self, postponed: &Postponed, name: impl Fn(&RegionKey) -> String) -> String {
        let (key, invocation) = &postponed.captured;
        let captured = format!("invocation {invocation} of {}", name(key));
        let conflict = match postponed.conflict {
            Conflict::Inside => format!("it runs inside {captured}"),
            Conflict::Trace => format!("its page trace runs through {captured}"),
            Conflict::Memory => {
                format!("the program's allocator lacks the memory that {captured} freed")
            }
            Conflict::Blocks => format!("blocks in use lie elsewhere than without {captured}"),
        };
        let number = postponed.invocation;
        let later = match (&self.cut, self.later.is_empty()) {
            (Some(cut), true) => format!("no other run was made ({cut})"),
            (Some(cut), false) => format!("other runs did not take it ({cut})"),
            (None, _) => format!("the next run did not reach invocation {number}"),
        };
        format!(
            "{conflict}, which the same run captured, and {later}: capture it alone, with --invocation {number}"
        )
    }
}
