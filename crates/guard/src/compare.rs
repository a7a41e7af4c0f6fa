//! Two builds, states of the sources, or sets of flags, region by region.

use crate::counts::{BUDGET, Counted};
use crate::keep;
use crate::party::Party;
use crate::units;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::build::Unit;
use cere_format::package::Manifest;
use cere_format::replay::Verdict;
use cere_measure::sides::{Race, Side, as_packaged};
use cere_measure::{Effort, Member, Replays, Settings};
use cere_memory::Geometry;
use cere_package::io::read_manifest;
use cere_store::state;
use cere_system::console::print;
use cere_timing::stats::Gain;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A region, or a codelet, on both sides.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Its name on the first side.
    pub name: String,
    /// Its name on the second one.
    pub other: String,
    /// Names of the codelets of each side.
    pub codelets: [Vec<String>; 2],
    /// Verdicts; none for a side that could not be run.
    pub verdicts: [Option<Verdict>; 2],
    /// What they rest on, or why there is none.
    pub reasons: [String; 2],
    /// Seconds of each side.
    pub seconds: [Option<f64>; 2],
    /// Time of the second side over that of the first.
    pub gain: Option<Gain>,
    /// Counts of each side.
    pub counts: [Option<Counted>; 2],
    /// Whether the machine code of both is the same; none if that is not known.
    pub same_code: Option<bool>,
    /// What people should know.
    pub notes: Vec<String>,
}

impl Compared {
    /// Whether both sides have the right result.
    pub fn is_right(&self) -> bool {
        let right = |v: &Option<Verdict>| matches!(v, Some(Verdict::Exact | Verdict::Tolerance));
        self.verdicts.iter().all(right)
    }

    /// With nothing known.
    pub fn open(name: &str, other: &str) -> Self {
        Self {
            name: name.to_owned(),
            other: other.to_owned(),
            codelets: [Vec::new(), Vec::new()],
            verdicts: [None, None],
            reasons: [String::new(), String::new()],
            seconds: [None, None],
            gain: None,
            counts: [None, None],
            same_code: None,
            notes: Vec::new(),
        }
    }
}

/// A region of both sides, with the files of its codelets.
pub struct Pair {
    names: [String; 2],
    files: [Vec<PathBuf>; 2],
}

impl Pair {
    /// What people call it.
    pub fn name(&self) -> &str {
        &self.names[0]
    }
}

/// Regions with the files of their codelets.
type Regions = BTreeMap<String, Vec<PathBuf>>;

/// The regions of `what` on both sides, and the names of those that only the first one has. All if `what` is empty.
pub fn pairs(
    parties: [&Party; 2],
    replays: [&Replays; 2],
    what: &[String],
) -> Result<(Vec<Pair>, Vec<String>)> {
    let all = ["*".to_owned()];
    let named = if what.is_empty() { &all } else { what };
    let first = keep::regions(&parties[0].store, replays[0], named)?;
    if parties[0].store == parties[1].store {
        let same = |(name, files): (String, Vec<PathBuf>)| Pair {
            names: [name.clone(), name],
            files: [files.clone(), files],
        };
        return Ok((first.into_iter().map(same).collect(), Vec::new()));
    }
    let second = keep::regions(&parties[1].store, replays[1], &all)?;
    let (mut found, mut alone) = (Vec::new(), Vec::new());
    for (name, files) in first {
        match matching(&name, &files, &second)? {
            Some((other, others)) => found.push(Pair {
                names: [name, other.clone()],
                files: [files, others.clone()],
            }),
            None => alone.push(name),
        }
    }
    if found.is_empty() {
        bail!(
            E6117,
            "no region of {} was captured in {}: they have no name and no function in common",
            parties[0].name,
            parties[1].name
        );
    }
    Ok((found, alone))
}

/// The region of `all` with this name; else the only one of the same place among the loops of the same function and file.
fn matching<'r>(
    name: &str,
    files: &[PathBuf],
    all: &'r Regions,
) -> Result<Option<(&'r String, &'r Vec<PathBuf>)>> {
    if let Some(found) = all.get_key_value(name) {
        return Ok(Some(found));
    }
    let place = |manifest: &Manifest| {
        let region = &manifest.region;
        let file = region.file.file_name().map(|n| n.to_owned());
        (
            region.symbol.clone(),
            file,
            region.kind,
            region.ordinal,
            region.index,
        )
    };
    let own = place(&read_manifest(&files[0])?);
    let mut found = Vec::new();
    for (other, files) in all {
        if place(&read_manifest(&files[0])?) == own {
            found.push((other, files));
        }
    }
    Ok(match &found[..] {
        [only] => Some(*only),
        _ => None,
    })
}

/// Compares regions of two sides.
pub struct Comparison<'a> {
    /// The sides.
    pub parties: [&'a Party; 2],
    /// What replays each.
    pub replays: [&'a Replays<'a>; 2],
    /// How.
    pub settings: Settings,
    /// Caches that traffic is simulated for.
    pub geometry: Option<Geometry>,
    /// How long each region is timed; none: not at all.
    pub effort: Option<Effort>,
}

impl Comparison<'_> {
    /// Compares a region. What ends it on a side is its result.
    pub fn compare(&self, pair: &Pair) -> Result<Compared> {
        let mut compared = Compared::open(&pair.names[0], &pair.names[1]);
        let members = |at: usize| units::members(self.replays[at], &pair.files[at]);
        let members = [members(0)?, members(1)?];
        let mut sides = Vec::new();
        for (at, members) in members.iter().enumerate() {
            compared.codelets[at] = members.iter().map(|m| m.manifest.name.clone()).collect();
            match self.side(at, members)? {
                Ok(side) => sides.push(Some(side)),
                Err(why) => {
                    compared.reasons[at] = why;
                    sides.push(None);
                }
            }
        }
        note_other_invocations(&mut compared);
        for (at, side) in sides.iter().enumerate() {
            if let Some(side) = side {
                self.judge(at, side, &mut compared);
            }
        }
        if let [Some(first), Some(second)] = &sides[..] {
            let same = first.is_same_code(second);
            compared.same_code = Some(same);
            let usable = |v: &Option<Verdict>| v.is_some_and(Verdict::is_right);
            let usable = compared.verdicts.iter().all(usable);
            if let Some(effort) = self.effort.filter(|_| usable) {
                let mut race = Race::new(first, second);
                race.time(effort)?;
                compared.gain = race.gain();
                compared.seconds = race.seconds();
                if compared.gain.is_none() {
                    compared
                        .notes
                        .push("its invocations are too short to be timed one by one".into());
                }
            }
        }
        Ok(compared)
    }

    fn judge(&self, at: usize, side: &Side, compared: &mut Compared) {
        match side.judge() {
            Ok(judged) => {
                compared.verdicts[at] = Some(judged.verdict);
                compared.reasons[at] = judged.reason;
                for note in judged.notes {
                    if !compared.notes.contains(&note) {
                        compared.notes.push(note);
                    }
                }
            }
            Err(error) => {
                compared.reasons[at] = print::error(&error.into());
                return;
            }
        }
        let counting = cere_count::Settings {
            geometry: self.geometry.clone(),
            random: false,
            budget: BUDGET,
            ..cere_count::Settings::default()
        };
        match Counted::of(side, &counting) {
            Ok(counted) => compared.counts[at] = Some(counted),
            Err(why) => {
                let name = &self.parties[at].name;
                compared
                    .notes
                    .push(format!("{name} cannot be counted: {why}"));
            }
        }
    }

    /// The code of one side. The inner error says why there is none.
    fn side<'m>(&self, at: usize, members: &'m [Member]) -> Result<Result<Side<'m>, String>> {
        let party = self.parties[at];
        let mut settings = self.settings.clone();
        settings.flags.clone_from(&party.flags);
        let options = self.replays[at].options_to_repeat(&settings)?;
        // One side's bridge is the other side's, too, so that they differ in nothing else.
        let edits = self.parties.iter().any(|party| party.edit.is_some());
        let scratch = tempfile::tempdir().context("cannot write temporary files")?;
        let mut compiled = units::Compiled::default();
        if let Some(edit) = &party.edit {
            let recorded = recorded(party, members);
            compiled = match units::compile(recorded.values(), edit, scratch.path(), &settings)? {
                Ok(compiled) => compiled,
                Err(said) => return Ok(Err(said)),
            };
        }
        let edited = match edits {
            true => units::bridged(members, |id| compiled.ir.get(id).cloned(), &options),
            false => Ok((as_packaged(members), String::new())),
        };
        let built = edited.and_then(|(edited, _)| Side::build(members, edited, &options));
        Ok(built.map_err(|error| print::error(&error.into())))
    }
}

/// The records of the units of `members`.
fn recorded(party: &Party, members: &[Member]) -> BTreeMap<String, Unit> {
    let units = members.iter().flat_map(|m| &m.manifest.units);
    let known = units.filter_map(|unit| state::unit(&party.store, &unit.id).ok());
    known.map(|unit| (unit.id.clone(), unit)).collect()
}

/// Notes that the sides ran invocations of other numbers.
fn note_other_invocations(compared: &mut Compared) {
    let number = |name: &String| name.rsplit(':').next().map(str::to_owned);
    let [first, second] = compared.codelets.each_ref().map(|names| {
        let mut numbers: Vec<_> = names.iter().filter_map(number).collect();
        numbers.sort();
        numbers.join(", ")
    });
    if first != second {
        compared.notes.push(format!(
            "the sides were captured at other invocations: {first} and {second}"
        ));
    }
}
