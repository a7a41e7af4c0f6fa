//! Tests are added, and today's code becomes the baseline.

use crate::check::{Work, is_right};
use crate::fixture::{self, Fixture, Guarded, Record};
use crate::units;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes, ensure};
use cere_format::build::Unit;
use cere_format::package::PACKAGE_EXTENSION;
use cere_format::store::Store;
use cere_measure::{Member, Replays};
use cere_store::{find, state};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Regions of `store` that `what` names, with the files of their codelets.
pub fn regions(
    store: &Store,
    replays: &Replays,
    what: &[String],
) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in find::all(store, what, replays.events())? {
        let manifest = cere_package::io::read_manifest(&file)
            .with_context(|| format!("the codelet {} cannot be used", file.display()))?;
        found.entry(manifest.region_name).or_default().push(file);
    }
    Ok(found)
}

/// A region of a store that becomes a test.
pub struct Adding<'a> {
    /// The tests.
    pub fixture: &'a Fixture,
    /// The store.
    pub store: &'a Store,
    /// What runs it.
    pub work: &'a Work<'a>,
    /// Most bytes of its folder.
    pub largest: u64,
}

impl Adding<'_> {
    /// Adds the region `name` with the codelets in `files`. What its user should know goes to `note`.
    pub fn add(&self, name: &str, files: &[PathBuf], note: impl Fn(String)) -> Result<Guarded> {
        let sizes = files
            .iter()
            .map(|file| file.metadata().map_or(0, |m| m.len()));
        self.check_size(name, sizes.sum())?;
        let members = self.work.members(name, files)?;
        let numbered = |at| format!("{}.{PACKAGE_EXTENSION}", at + 1);
        let mut record = Record {
            version: Guarded::VERSION,
            name: name.to_owned(),
            symbol: String::new(),
            file: PathBuf::new(),
            line: 0,
            codelets: Vec::new(),
            files: (0..files.len()).map(numbered).collect(),
            units: Vec::new(),
            accepted: false,
            baseline: Default::default(),
        };
        let units = self.units(name, &members)?;
        self.name_outside(&units, note);
        let region = &members[0].manifest.region;
        record.symbol.clone_from(&region.symbol);
        record.file = self.fixture.from_root(&region.file);
        record.line = region.line;
        record.codelets = members.iter().map(|m| m.manifest.name.clone()).collect();
        record.units = units.iter().map(|unit| unit.id.clone()).collect();
        let side = self.work.base(&members, &|_| None)?;
        let judged = side.judge()?;
        ensure!(
            is_right(judged.verdict, || Some(judged.verdict)),
            E6109,
            "{name} is no test, as its replay is {}: {}",
            judged.verdict.name(),
            judged.reason
        );
        let counts = self.work.count(&side).map_err(anyhow::Error::msg)?;
        record.baseline = self.work.baseline(Some(counts));
        let added = self.fixture.write(&record, |folder| {
            for (file, name) in files.iter().zip(&record.files) {
                let to = folder.join(name);
                std::fs::copy(file, &to)
                    .with_context(|| format!("cannot write {}", to.display()))?;
            }
            let root = self.fixture.root();
            units
                .iter()
                .try_for_each(|unit| fixture::write_unit(folder, unit, root))
        })?;
        let bytes = added.bytes();
        if let Err(error) = self.check_size(name, bytes) {
            std::fs::remove_dir_all(&added.folder)?;
            return Err(error);
        }
        Ok(added)
    }

    fn check_size(&self, name: &str, bytes: u64) -> Result<()> {
        const MEGABYTE: f64 = 1e6;
        ensure!(
            bytes <= self.largest,
            E6106,
            "{name} would take {:.1} MB, more than {:.1}: capture an invocation with less memory (`cere capture --invocation N`, a smaller input), name one of its codelets, or allow more by --max-size",
            bytes as f64 / MEGABYTE,
            self.largest as f64 / MEGABYTE
        );
        Ok(())
    }

    /// The units of the codelets that the store has records of; the regions' own have to be among them.
    fn units(&self, name: &str, members: &[Member]) -> Result<Vec<Unit>> {
        let mut found: BTreeMap<String, Unit> = BTreeMap::new();
        for member in members {
            for (place, unit) in member.manifest.units.iter().enumerate() {
                match state::unit(self.store, &unit.id) {
                    Ok(record) => drop(found.insert(record.id.clone(), record)),
                    Err(error) if place == 0 => {
                        return Err(error).or_coded(codes::E6107, || {
                            format!(
                                "{name} was not captured from a build of the store {}: its source cannot be compiled",
                                self.store.root().display()
                            )
                        });
                    }
                    Err(_) => {}
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Notes files that are not in the repository, where another checkout has them not.
    fn name_outside(&self, units: &[Unit], note: impl Fn(String)) {
        let root = self.fixture.root();
        let files = units.iter().flat_map(|u| u.sources.iter().map(|s| &s.file));
        let outside: Vec<&PathBuf> = files.filter(|file| !file.starts_with(root)).collect();
        if let Some(first) = outside.first() {
            note(format!(
                "{} of its sources are not in {} ({}): they have to be in that place wherever `cere guard` runs",
                outside.len(),
                root.display(),
                first.display()
            ));
        }
    }
}

/// Takes the code of the sources as they are for the baseline of a test; the codelets stay, and what a result has to be. False if it
/// is that already.
pub fn accept(fixture: &Fixture, work: &Work, test: &Guarded) -> Result<bool> {
    let members = work.members(&test.record.name, &test.codelets())?;
    let units = test.units(fixture.root())?;
    if units::are_unchanged(units.values()) {
        return accept_counts(fixture, work, test, &members);
    }
    let (compiled, _, side) = work
        .now(&test.record.name, &members, &units)?
        .map_err(anyhow::Error::msg)?;
    let judged = side.judge()?;
    let base = || {
        Some(
            work.base(&members, &|id| test.accepted(id))
                .ok()?
                .judge()
                .ok()?
                .verdict,
        )
    };
    if !is_right(judged.verdict, base) {
        bail!(
            E6115,
            "its result is {}: {}. If the new result is the right one, capture the region again and add it again with `cere guard add`",
            judged.verdict.name(),
            judged.reason
        );
    }
    let counts = work.count(&side).map_err(anyhow::Error::msg)?;
    let mut record = test.record.clone();
    record.accepted = true;
    record.baseline = work.baseline(Some(counts));
    if let Some(region) =
        compiled.region(&members[0].manifest.key.unit, &members[0].manifest.region)
    {
        record.line = region.line;
        record.file = fixture.from_root(&region.file);
    }
    rewrite(fixture, test, &record, |folder| {
        for unit in units.values() {
            let now = units::with_sources_now(unit, &compiled);
            fixture::write_unit(folder, &now, fixture.root())?;
            if let Some(ir) = compiled.ir.get(&unit.id) {
                let to = fixture::accepted_file(folder, &unit.id);
                state::make_directory(to.parent().unwrap_or(folder))?;
                std::fs::copy(ir, &to).with_context(|| format!("cannot write {}", to.display()))?;
            }
        }
        Ok(())
    })?;
    Ok(true)
}

/// The counts of the baseline as they are on this machine, if they are others.
fn accept_counts(
    fixture: &Fixture,
    work: &Work,
    test: &Guarded,
    members: &[Member],
) -> Result<bool> {
    let side = work.base(members, &|id| test.accepted(id))?;
    let counts = work.count(&side).map_err(anyhow::Error::msg)?;
    let baseline = work.baseline(Some(counts));
    if baseline == test.record.baseline {
        return Ok(false);
    }
    let record = Record {
        baseline,
        ..test.record.clone()
    };
    rewrite(fixture, test, &record, |_| Ok(()))?;
    Ok(true)
}

/// Writes the test again, with all files that it has, and what `change` makes of them.
fn rewrite(
    fixture: &Fixture,
    test: &Guarded,
    record: &Record,
    change: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    fixture.write(record, |folder| {
        copy(&test.folder, folder)?;
        change(folder)
    })?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let failed = || format!("cannot copy {}", from.display());
    for entry in std::fs::read_dir(from).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let there = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            state::make_directory(&there)?;
            copy(&path, &there)?;
        } else {
            std::fs::copy(&path, &there).with_context(failed)?;
        }
    }
    Ok(())
}
