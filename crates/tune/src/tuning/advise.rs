//! Lines of source that give a winner's machine code without its flags. Each is compiled, none is guessed.

use super::minimise::minimise;
use crate::Variant;
use crate::advice::idea::{Idea, Line, Lines, ideas, placed};
use crate::advice::{Outline, outline, text};
use anyhow::{Context, Result, bail, ensure};
use cere_catalogue::{OrCoded, codes};
use cere_format::build::{Language, RegionKind, Unit};
use cere_measure::{Lab, Target};
use cere_replay::{EditedUnit, code};
use cere_store::build::wrapper::edited::{self, Edit};
use cere_store::sources::Changes;
use cere_store::state;
use cere_system::console::print;
use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sets of lines that are compiled for a region, at most.
const MOST: u32 = 40;
/// Longest time for a region.
const LONGEST: Duration = Duration::from_secs(20);

/// What a source may say instead of flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// With these lines, the region has the winner's machine code.
    Lines {
        /// The lines; all are needed.
        lines: Vec<SourceLine>,
        /// Flags that they stand for; others stay.
        replaces: Vec<String>,
        /// Whether the region's function is the same as under the flags in an object that is compiled without CERE, too: all of the
        /// object for parallel regions and functions that are only inlined.
        same_in_build: bool,
    },
    /// No such lines are known, for this reason.
    None(String),
}

/// A line for a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The source: below the directory of the compile, or absolute.
    pub file: PathBuf,
    /// Line above which it comes, or into which, from 1, of the source as it is.
    pub line: u32,
    /// Byte of that line before which it comes, from 1; none: it is a line of its own.
    pub column: Option<u32>,
    /// What it says.
    pub text: String,
}

/// Looks for lines that give the machine code of `variant` in a region, until the time `is_over`.
pub fn advise(lab: &Lab, target: &Target, variant: &Variant, is_over: &dyn Fn() -> bool) -> Advice {
    let begin = Instant::now();
    let is_over = || is_over() || begin.elapsed() > LONGEST;
    if is_over() {
        return Advice::None("there was no time to look for one".to_owned());
    }
    let found = Adviser::open(lab, target, variant).and_then(|adviser| adviser.search(&is_over));
    found.unwrap_or_else(|error| Advice::None(print::error(&error)))
}

/// Tries lines for one region.
struct Adviser<'a> {
    lab: &'a Lab<'a>,
    target: &'a Target,
    variant: &'a Variant,
    unit: Unit,
    file: PathBuf,
    text: String,
    outline: Outline,
    /// The winner's machine code, of each codelet.
    wanted: Vec<String>,
    scratch: tempfile::TempDir,
    compiles: Cell<u32>,
}

impl<'a> Adviser<'a> {
    /// Fails if nothing can be said of the region's source, with the reason.
    fn open(lab: &'a Lab<'a>, target: &'a Target, variant: &'a Variant) -> Result<Self> {
        if variant.passes.is_some() {
            bail!("no source can ask for a pipeline");
        }
        let first = target
            .members
            .first()
            .or_coded(codes::E6018, || "it has no codelets")?;
        let (manifest, region) = (&first.manifest, &first.manifest.region);
        let own = manifest.units.first().context("its codelet has no units")?;
        let unit = state::unit(lab.store, &own.id)
            .context("its codelet is not of a build in this store")?;
        let known = matches!(
            unit.language,
            Language::C | Language::Cxx | Language::Fortran
        );
        if !known || unit.command.front.is_some() {
            bail!(
                "no such lines are known for {} of this compiler",
                unit.language.facts().name
            );
        }
        unchanged(lab, &unit)?;
        let file = source(&unit, &region.file)?;
        let text = state::read_text(&file)?;
        let fortran = unit.language == Language::Fortran;
        let outline = outline(
            &text,
            fortran,
            (region.line, region.ordinal),
            &region.function,
        );
        let place = state::scratch(lab.store);
        state::make_directory(&place)?;
        let scratch = tempfile::Builder::new()
            .prefix("advice.")
            .tempdir_in(&place);
        let mut adviser = Self {
            lab,
            target,
            variant,
            unit,
            file,
            text,
            outline,
            wanted: Vec::new(),
            scratch: scratch.with_context(|| format!("cannot write in {}", place.display()))?,
            compiles: Cell::new(0),
        };
        for member in 0..target.members.len() {
            let code = adviser.code(member, None, &variant.flags)?;
            adviser.wanted.push(code);
        }
        if !adviser.has_code(&[], &variant.flags)? {
            bail!(
                "{} compiled again has other code than what was captured",
                adviser.shown().display()
            );
        }
        if adviser.has_code(&[], &[])? {
            bail!("the code is the same without the flags");
        }
        Ok(adviser)
    }

    fn is_fortran(&self) -> bool {
        self.unit.language == Language::Fortran
    }

    /// The source for people.
    fn shown(&self) -> &Path {
        let directory = &self.unit.command.directory;
        self.file.strip_prefix(directory).unwrap_or(&self.file)
    }

    fn search(&self, is_over: &dyn Fn() -> bool) -> Result<Advice> {
        let choices = self.variant.choices();
        let ideas = ideas(&choices);
        let sets: Vec<(&Idea, Vec<Lines>)> = ideas
            .iter()
            .map(|idea| (idea, placed(idea, &self.outline, self.is_fortran())))
            .collect();
        if sets.iter().all(|(_, sets)| sets.is_empty()) {
            bail!("no line is known that asks for what these flags do");
        }
        let mut seen = HashSet::new();
        let mut without_effect = false;
        let before = self.compiles.get();
        for (idea, lines) in in_order(&sets) {
            let flags: Vec<String> = idea.kept.iter().flat_map(|n| choices[*n].clone()).collect();
            if !seen.insert((self.with(lines, false), flags.clone())) {
                continue;
            }
            let tried = self.compiles.get() - before;
            if is_over() || tried >= MOST {
                bail!(
                    "none of the first {tried} tries gave the same code, and there was no time for others"
                );
            }
            if !self.has_code(lines, &flags)? {
                continue;
            }
            let least = minimise(lines.clone(), |some| {
                !some.is_empty() && !is_over() && self.has_code(some, &flags).unwrap_or(false)
            });
            match self.same_in_build(&least, &flags)? {
                None => without_effect = true,
                Some(same_in_build) => {
                    let replaced = (0..choices.len()).filter(|n| !idea.kept.contains(n));
                    let replaced = replaced.flat_map(|n| choices[n].clone()).collect();
                    return Ok(self.found(least, replaced, same_in_build));
                }
            }
        }
        if without_effect {
            bail!("lines that give the same code here change nothing in a plain compile");
        }
        let tried = self.compiles.get() - before;
        bail!("none of {tried} tries gave the same code");
    }

    fn found(&self, lines: Lines, replaces: Vec<String>, same_in_build: bool) -> Advice {
        let line = |(place, text): Line| SourceLine {
            file: self.shown().to_owned(),
            line: place.line,
            column: place.column,
            text,
        };
        Advice::Lines {
            lines: lines.into_iter().map(line).collect(),
            replaces,
            same_in_build,
        }
    }

    /// The source with `lines`; `keep_numbers`: all others are compiled with the numbers that they had.
    fn with(&self, lines: &[Line], keep_numbers: bool) -> String {
        text::with(&self.text, lines, keep_numbers && !self.is_fortran())
    }

    /// A directory of its own, and the edit that has the source with `lines`.
    fn edit(&self, lines: &[Line], keep_numbers: bool) -> Result<(PathBuf, Edit)> {
        let number = self.compiles.get();
        self.compiles.set(number + 1);
        let place = self.scratch.path().join(number.to_string());
        state::make_directory(&place)?;
        let new = place.join("edited");
        std::fs::write(&new, self.with(lines, keep_numbers))
            .with_context(|| format!("cannot write {}", new.display()))?;
        let edit = Edit {
            replaced: vec![(self.file.clone(), new)],
            moved: None,
        };
        Ok((place, edit))
    }

    /// Whether the region has the winner's machine code with `lines` in its source and `flags` after those of the build.
    fn has_code(&self, lines: &[Line], flags: &[String]) -> Result<bool> {
        let (place, edit) = self.edit(lines, true)?;
        let sandbox = &self.lab.settings.sandbox;
        let compiled = edited::compile(&self.unit, &edit, &place, sandbox)?;
        let same = compiled.is_ok_and(|ir| {
            let mut each = self.wanted.iter().enumerate();
            each.all(|(member, wanted)| {
                let code = self.code(member, Some(&ir), flags);
                code.is_ok_and(|code| code == *wanted)
            })
        });
        let _ = std::fs::remove_dir_all(&place);
        Ok(same)
    }

    /// The machine code of a codelet, from `ir`, if given, in the place of the package's.
    fn code(&self, member: usize, ir: Option<&Path>, flags: &[String]) -> Result<String> {
        let member = &self.target.members[member];
        let settings = cere_replay::Settings {
            flags: flags.to_vec(),
            passes: None,
            ..self.lab.settings.clone()
        };
        let mut options = self.lab.replays.options_to_repeat(&settings)?;
        options.edited.extend(ir.map(|ir| EditedUnit {
            unit: self.unit.id.clone(),
            ir: ir.to_owned(),
        }));
        let objects = cere_replay::compile(&member.package, &member.manifest, &options)?;
        Ok(objects.code()?)
    }

    /// Whether an object with `lines` and `flags` that is compiled without CERE is the same as one with the winner's flags; none if the
    /// lines change nothing in it.
    fn same_in_build(&self, lines: &[Line], flags: &[String]) -> Result<Option<bool>> {
        let with_lines = self.plain_code(lines, flags)?;
        let without = self.plain_code(&[], flags)?;
        ensure!(
            with_lines.is_some() && without.is_some(),
            "{} cannot be compiled without CERE: nothing is known of a plain build",
            self.shown().display()
        );
        if with_lines == without {
            return Ok(None);
        }
        let winner = self.plain_code(&[], &self.variant.flags)?;
        Ok(Some(with_lines == winner))
    }

    /// The machine code of the region's function in an object that is compiled without CERE; none if the compiler refuses it.
    fn plain_code(&self, lines: &[Line], flags: &[String]) -> Result<Option<String>> {
        let (place, edit) = self.edit(lines, false)?;
        let object = place.join("plain.o");
        if edited::plainly(&self.unit, &edit, flags, &place, &object)?.is_err() {
            return Ok(None);
        }
        let region = &self.target.members[0].manifest.region;
        let function = match region.kind {
            // Its code is in functions that the runtime calls.
            RegionKind::Parallel => None,
            _ => code::of_function(&object, &region.symbol)?,
        };
        Ok(Some(match function {
            Some(code) => code,
            None => code::fingerprint(&[&object])?,
        }))
    }
}

/// The likely places of all ideas come first.
fn in_order<'s>(sets: &'s [(&'s Idea, Vec<Lines>)]) -> impl Iterator<Item = (&'s Idea, &'s Lines)> {
    let of = |range: fn(&[Lines]) -> &[Lines]| {
        let each = sets.iter();
        each.flat_map(move |(idea, sets)| range(sets).iter().map(move |lines| (*idea, lines)))
    };
    let likely = of(|sets| &sets[..sets.len().min(1)]);
    likely.chain(of(|sets| &sets[sets.len().min(1)..]))
}

/// Fails if sources of the unit are no longer what was compiled.
fn unchanged(lab: &Lab, unit: &Unit) -> Result<()> {
    let changes = Changes::of(lab.store, unit);
    if let Some(file) = changes.gone.first() {
        bail!("{} is not there any more", file.display());
    }
    if let Some(file) = changes.changed.first() {
        bail!("{} changed since the build", file.display());
    }
    Ok(())
}

/// The source of `unit` that debug information calls `file`.
fn source(unit: &Unit, file: &Path) -> Result<PathBuf> {
    let whole = unit.command.directory.join(file);
    let real = whole.canonicalize().ok();
    let own = std::iter::once(&unit.source);
    let mut listed = own.chain(unit.sources.iter().map(|source| &source.file));
    let same = |own: &&PathBuf| **own == whole || real.is_some() && own.canonicalize().ok() == real;
    let found = listed.find(same);
    let found = found.with_context(|| format!("{} is no source of the build", file.display()))?;
    Ok(found.clone())
}
