//! Sources as they are, compiled beside the build and let run on what was captured.

use anyhow::Result;
use cere_catalogue::{OrCoded, codes};
use cere_format::build::{Region, Unit};
use cere_measure::{Member, Replays, Settings};
use cere_replay::{EditedUnit, Options, ReplayError};
use cere_store::build::wrapper::edited::{self, Edit};
use cere_store::{sources, state};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Units that were compiled.
#[derive(Debug, Default)]
pub struct Compiled {
    /// Their IR, by the ids that the codelets know them by.
    pub ir: BTreeMap<String, PathBuf>,
    /// What was recorded of them.
    records: BTreeMap<String, Unit>,
}

/// How often a compile is repeated whose sources were saved meanwhile.
const AGAIN: usize = 3;

/// Compiles `units` with `edit` in the empty directory `scratch`. The inner error is what the compiler says, or that a source does not
/// rest.
pub fn compile<'u>(
    units: impl Iterator<Item = &'u Unit>,
    edit: &Edit,
    scratch: &Path,
    settings: &Settings,
) -> Result<Result<Compiled, String>> {
    let units: Vec<&Unit> = units.collect();
    let made = Directories::of(&units, edit)?;
    for attempt in 0..AGAIN {
        let before = contents(&units, edit);
        let place = scratch.join(attempt.to_string());
        let found = once(&units, edit, &place, settings)?;
        if contents(&units, edit) == before {
            return Ok(found);
        }
    }
    drop(made);
    let first = units.first().map(|unit| unit.source.display().to_string());
    Ok(Err(format!(
        "{} or a header of it was saved while it was compiled, {AGAIN} times: try again when it rests",
        first.unwrap_or_default()
    )))
}

fn once(
    units: &[&Unit],
    edit: &Edit,
    place: &Path,
    settings: &Settings,
) -> Result<Result<Compiled, String>> {
    let mut compiled = Compiled::default();
    for unit in units {
        let scratch = place.join(&unit.id);
        state::make_directory(&scratch)?;
        match edited::compile(unit, edit, &scratch, &settings.sandbox)? {
            Ok(ir) => {
                let record = state::read_json(&ir.with_extension("json"))?;
                compiled.records.insert(unit.id.clone(), record);
                compiled.ir.insert(unit.id.clone(), ir);
            }
            Err(said) => return Ok(Err(said.trim_end().to_owned())),
        }
    }
    Ok(Ok(compiled))
}

/// The files that `units` are made of, where `edit` has them.
fn files(units: &[&Unit], edit: &Edit) -> BTreeSet<PathBuf> {
    let own = units.iter().flat_map(|unit| {
        let listed = unit.sources.iter().map(|source| &source.file);
        listed.chain([&unit.source])
    });
    own.map(|file| moved(file, edit)).collect()
}

fn moved(file: &Path, edit: &Edit) -> PathBuf {
    let there = edit.moved.as_ref().and_then(|(from, to)| {
        let rest = file.strip_prefix(from).ok()?;
        Some(to.join(rest))
    });
    there.unwrap_or_else(|| file.to_owned())
}

fn contents(units: &[&Unit], edit: &Edit) -> Vec<Option<String>> {
    let each = files(units, edit).into_iter();
    each.map(|file| state::hash_file(&file).ok()).collect()
}

/// Directories of compiles that are not there, as in a fresh checkout: made, and removed if nothing was put into them.
struct Directories(Vec<PathBuf>);

impl Directories {
    fn of(units: &[&Unit], edit: &Edit) -> Result<Self> {
        let mut made = Self(Vec::new());
        for unit in units {
            let directory = moved(&unit.command.directory, edit);
            let missing = directory.ancestors().take_while(|d| !d.exists());
            let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
            missing.reverse();
            for directory in missing {
                std::fs::create_dir(&directory).or_coded(codes::E5314, || {
                    format!(
                        "{} was compiled in {}, which is not there and cannot be made",
                        unit.source.display(),
                        directory.display()
                    )
                })?;
                made.0.push(directory);
            }
        }
        Ok(made)
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        for directory in self.0.iter().rev() {
            let _ = std::fs::remove_dir(directory);
        }
    }
}

/// Whether all sources of `units` are what they were.
pub fn are_unchanged<'u>(mut units: impl Iterator<Item = &'u Unit>) -> bool {
    units.all(|unit| {
        let known = !unit.sources.is_empty();
        known && !unit.sources.iter().any(|s| sources::is_other(s, &s.file))
    })
}

/// `unit` with what its sources are now.
pub fn with_sources_now(unit: &Unit, compiled: &Compiled) -> Unit {
    let mut now = unit.clone();
    if let Some(record) = compiled.records.get(&unit.id) {
        now.sources.clone_from(&record.sources);
    }
    now
}

impl Compiled {
    /// The region that stands where `region` of the unit `id` was, if it is found by its function.
    pub fn region(&self, id: &str, region: &Region) -> Option<&Region> {
        let all = &self.records.get(id)?.regions;
        let same = |r: &&Region| r.symbol == region.symbol && r.kind == region.kind;
        let own: Vec<&Region> = all.iter().filter(same).collect();
        // Loops of a function keep their order.
        own.iter()
            .find(|r| r.line == region.line)
            .or_else(|| own.iter().find(|r| r.index == region.index))
            .or(own.first())
            .copied()
    }
}

/// The codelets' units with the IR that `ir` knows in the place of captured ones. A region's own unit is bridged all the same, so that
/// two codes differ in nothing else. Beside it what differs and is not run, empty if nothing does.
pub fn bridged(
    members: &[Member],
    ir: impl Fn(&str) -> Option<PathBuf>,
    options: &Options,
) -> Result<(Vec<Vec<EditedUnit>>, String), ReplayError> {
    let (mut all, mut others) = (Vec::new(), String::new());
    for member in members {
        let (package, manifest) = (&member.package, &member.manifest);
        let mut units = Vec::new();
        for (place, unit) in manifest.units.iter().enumerate() {
            let found = ir(&unit.id);
            if place > 0 {
                units.extend(found.map(|ir| EditedUnit {
                    unit: unit.id.clone(),
                    ir,
                }));
                continue;
            }
            let ir = found.unwrap_or_else(|| package.join(unit.member()));
            let (edited, beside) =
                cere_replay::bridge::bridge(package, manifest, &ir, None, options)?;
            units.push(edited);
            others = beside;
        }
        all.push(units);
    }
    Ok((all, others))
}

/// Unpacks the codelets in `files`.
pub fn members(replays: &Replays, files: &[PathBuf]) -> Result<Vec<Member>> {
    files
        .iter()
        .map(|file| Member::open(replays, file))
        .collect()
}

/// A name for a directory.
pub fn short_hash(text: &str) -> String {
    state::hash(text)[..16].to_owned()
}
