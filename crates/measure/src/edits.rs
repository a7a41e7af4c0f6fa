//! Edited sources, tried on codelets: the code that stands for a region now runs on what was captured of it, and is timed in turns with
//! the code as captured.
//!
//! | step | where |
//! |---|---|
//! | a unit is compiled again, beside the build | [`cere_store::build::wrapper::edited`] |
//! | what stands for the region gets the captured arguments | [`cere_replay::bridge`] |
//! | both codes run in turns | [`crate::Turns`] |

mod alternated;
pub mod captured;
pub mod contents;
pub mod given;
pub mod kept;
mod tried;

use crate::{Effort, Replays, Settings, Target};
use alternated::{Subject, bridged_as_captured, time};
use anyhow::{Context, Result};
use cere_format::build::{SourceFile, Unit};
use cere_format::package::Manifest;
use cere_replay::{EditedUnit, Options};
use cere_store::build::wrapper::edited::{self, Edit};
use cere_store::sources::{self, Changes};
use cere_store::state;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tried::explained;

pub use tried::Tried;

/// One state of the sources.
#[derive(Debug, Clone, Default)]
pub struct Variant {
    /// What people call it; empty: the sources as they are.
    pub name: String,
    /// Where its files are.
    pub edit: Edit,
    /// Flags after those of the build.
    pub flags: Vec<String>,
    /// Symbols that functions are called by now, by the old ones.
    pub renamed: BTreeMap<String, String>,
}

/// Compiles the units of variants, each once.
pub struct Edits<'a> {
    replays: &'a Replays<'a>,
    settings: Settings,
    scratch: tempfile::TempDir,
    baseline: Option<usize>,
    /// What differs in the last unit that was bridged, and is not run.
    others: String,
    /// By variant and unit.
    compiled: BTreeMap<(usize, String), Result<PathBuf, String>>,
}

/// Why a variant says nothing of a codelet.
enum Untried {
    /// None of its sources differs.
    Unchanged,
    /// It cannot be compiled, linked or run on what was captured.
    Failed(String),
}

impl<'a> Edits<'a> {
    /// Nothing compiled yet. `settings`: how to replay.
    pub fn new(replays: &'a Replays<'a>, settings: Settings) -> Result<Self> {
        let place = state::scratch(replays.store);
        state::make_directory(&place)?;
        let scratch = tempfile::Builder::new().prefix("try.").tempdir_in(&place);
        Ok(Self {
            replays,
            settings,
            scratch: scratch.with_context(|| format!("cannot write in {}", place.display()))?,
            baseline: None,
            others: String::new(),
            compiled: BTreeMap::new(),
        })
    }

    /// Compares with the variant of this number as well. Where nothing differs in it, that is the code as captured.
    pub fn compare_with(&mut self, variant: usize) {
        self.baseline = Some(variant);
    }

    /// Tries `variants` on the codelets of a region. None for a variant in which no source of the codelets differs, and that has no
    /// flags.
    pub fn attempt(
        &mut self,
        target: &Target,
        variants: &[Variant],
        effort: Effort,
    ) -> Result<Vec<Option<Tried>>> {
        let base = self.replays.options_to_repeat(&self.settings)?;
        let mut subjects = match as_captured(target, &base) {
            Ok(subject) => vec![subject],
            Err(error) => return Ok(all_failed(variants, &error)),
        };
        let mut found: Vec<Option<Tried>> = Vec::new();
        let mut places = Vec::new();
        for (number, variant) in variants.iter().enumerate() {
            found.push(match self.subject(target, (number, variant), &base)? {
                Ok(subject) => {
                    places.push(number);
                    subjects.push(subject);
                    Some(Tried::open(&variant.name))
                }
                Err(Untried::Unchanged) => None,
                Err(Untried::Failed(reason)) => Some(Tried {
                    reason,
                    ..Tried::open(&variant.name)
                }),
            });
        }
        if places.is_empty() {
            return Ok(found);
        }
        // Subject 0 is the code as captured.
        let baseline = self.baseline.map(|number| {
            let place = places.iter().position(|place| *place == number);
            place.map_or(0, |place| place + 1)
        });
        let timed = match time(self.replays, target, subjects, baseline, effort) {
            Ok(timed) => timed,
            Err(error) => return Ok(all_failed(variants, &error)),
        };
        for (place, tried) in places.into_iter().zip(timed) {
            found[place] = Some(Tried {
                variant: variants[place].name.clone(),
                ..tried
            });
        }
        Ok(found)
    }

    /// The variant of all codelets, built.
    fn subject<'m>(
        &mut self,
        target: &'m Target,
        (number, variant): (usize, &Variant),
        base: &Options,
    ) -> Result<Result<Subject<'m>, Untried>> {
        let mut settings = self.settings.clone();
        settings.flags.clone_from(&variant.flags);
        let options = Options {
            settings,
            ..base.clone()
        };
        let mut edited = Vec::new();
        self.others.clear();
        for member in &target.members {
            match self.edited_units(
                &member.package,
                &member.manifest,
                (number, variant),
                &options,
            )? {
                Ok(units) => edited.push(units),
                Err(untried) => return Ok(Err(untried)),
            }
        }
        if edited.iter().all(Vec::is_empty) && variant.flags.is_empty() {
            return Ok(Err(Untried::Unchanged));
        }
        for source in self.changed_beside(target, &variant.edit)? {
            let apart = if self.others.is_empty() { "" } else { ", " };
            self.others += &format!("{apart}code of {}", source.display());
        }
        let built = Subject::build(target, edited, &options);
        Ok(built
            .map(|subject| subject.beside(std::mem::take(&mut self.others)))
            .map_err(|error| Untried::Failed(explained(error))))
    }

    /// The units of a codelet whose sources the variant changes, compiled, and that of the region bridged.
    fn edited_units(
        &mut self,
        package: &Path,
        manifest: &Manifest,
        (number, variant): (usize, &Variant),
        options: &Options,
    ) -> Result<Result<Vec<EditedUnit>, Untried>> {
        let mut found = Vec::new();
        for (place, unit) in manifest.units.iter().enumerate() {
            let Ok(record) = state::unit(self.replays.store, &unit.id) else {
                continue;
            };
            if !self.changes(&record, &variant.edit)? {
                continue;
            }
            let ir = match self.compiled(number, &record, &variant.edit)? {
                Ok(ir) => ir.clone(),
                Err(said) => return Ok(Err(Untried::Failed(said.trim_end().to_owned()))),
            };
            if self.settings.sandbox.is_sealed() {
                let captured = package.join(unit.member());
                if let Some(found) = cere_replay::unread::find(&ir, &captured, options)? {
                    return Ok(Err(Untried::Failed(format!(
                        "it has {found}, which the captured code has not: refused in code that nobody has read"
                    ))));
                }
            }
            if place > 0 {
                found.push(EditedUnit {
                    unit: unit.id.clone(),
                    ir,
                });
                continue;
            }
            let function = variant.renamed.get(&manifest.region.symbol);
            let bridged = cere_replay::bridge::bridge(
                package,
                manifest,
                &ir,
                function.map(String::as_str),
                options,
            );
            match bridged {
                Ok((edited, others)) => {
                    found.push(edited);
                    self.others = others;
                }
                Err(error) => return Ok(Err(Untried::Failed(explained(error)))),
            }
        }
        Ok(Ok(found))
    }

    /// Sources of the build's other units that the variant changes: what the region calls of them is run, no more.
    fn changed_beside(&self, target: &Target, edit: &Edit) -> Result<BTreeSet<PathBuf>> {
        let regions = target
            .members
            .iter()
            .filter_map(|m| m.manifest.units.first());
        let own: BTreeSet<&str> = regions.map(|unit| unit.id.as_str()).collect();
        let mut found = BTreeSet::new();
        for unit in state::current_units(self.replays.store)? {
            let other = !own.contains(unit.id.as_str());
            if other && unit.source.exists() && self.changes(&unit, edit)? {
                found.insert(unit.source);
            }
        }
        Ok(found)
    }

    /// Whether a source of the unit is another one in the variant than it was.
    fn changes(&self, unit: &Unit, edit: &Edit) -> Result<bool> {
        let store = self.replays.store;
        if let Some((from, to)) = &edit.moved {
            return Ok(unit.sources.iter().any(|source| {
                let Ok(rest) = source.file.strip_prefix(from) else {
                    return false;
                };
                sources::is_other(source, &to.join(rest))
            }));
        }
        let replaced: BTreeMap<&PathBuf, &PathBuf> =
            edit.replaced.iter().map(|(from, to)| (from, to)).collect();
        if !replaced.is_empty() {
            let other = |then: &SourceFile| {
                let new = replaced.get(&then.file);
                new.is_some_and(|new| sources::is_other(then, new))
            };
            let listed = unit.sources.iter().any(|then| then.file == unit.source);
            let unknown = !listed && replaced.contains_key(&unit.source);
            return Ok(unknown || unit.sources.iter().any(other));
        }
        let changes = Changes::of(store, unit);
        cere_catalogue::ensure!(
            !changes.gone.contains(&unit.source),
            E5309,
            "{} is not there any more: put it back, or name the file with its code now by --source",
            unit.source.display()
        );
        // Without a header the compiler says what is missing.
        Ok(!changes.changed.is_empty() || !changes.gone.is_empty())
    }

    fn compiled(
        &mut self,
        number: usize,
        unit: &Unit,
        edit: &Edit,
    ) -> Result<&Result<PathBuf, String>> {
        let key = (number, unit.id.clone());
        if !self.compiled.contains_key(&key) {
            let place = self.scratch.path().join(format!("{number}-{}", unit.id));
            state::make_directory(&place)?;
            let done = edited::compile(unit, edit, &place, &self.settings.sandbox)?;
            self.compiled.insert(key.clone(), done);
        }
        Ok(&self.compiled[&key])
    }
}

/// All variants of a region whose captured code cannot be run in this way.
fn all_failed(variants: &[Variant], error: &anyhow::Error) -> Vec<Option<Tried>> {
    let each = variants.iter();
    each.map(|variant| Some(Tried::failed(&variant.name, error)))
        .collect()
}

/// The code as captured, built in the way of the edited code, so that nothing but the edit differs.
fn as_captured<'m>(target: &'m Target, options: &Options) -> Result<Subject<'m>> {
    let each = target.members.iter().map(|member| {
        let own = bridged_as_captured(member, None, options);
        Ok(vec![own.with_context(|| member.manifest.name.clone())?])
    });
    let units = each.collect::<Result<Vec<_>>>()?;
    Ok(Subject::build(target, units, options)?)
}
