//! What a user should know of a codelet or a profile before its numbers are believed.

use crate::built::Current;
use crate::sources::Changes;
use crate::state;
use anyhow::Result;
use cere_format::package::{Manifest, PackageUnit};
use cere_format::profile::Profile;
use cere_format::store::Store;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Names that a note lists, at most.
const NAMED: usize = 3;

/// The notes on a store's codelets.
pub struct Notes {
    store: Store,
    current: Current,
    /// By unit; none if the store does not know the unit.
    changes: Mutex<HashMap<String, Option<Changes>>>,
}

impl Notes {
    /// Of the codelets of `store`.
    pub fn of(store: &Store) -> Result<Self> {
        Ok(Self {
            store: store.clone(),
            current: Current::of(store)?,
            changes: Mutex::default(),
        })
    }

    /// Which codelets are of the current build.
    pub fn current(&self) -> &Current {
        &self.current
    }

    fn changes(&self, unit: &str) -> Option<Changes> {
        let mut known = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(unit.to_owned()).or_insert_with(|| {
            let unit = state::unit(&self.store, unit).ok()?;
            Some(Changes::of(&self.store, &unit))
        });
        found.clone()
    }

    /// What changed of the units of `codelet`: of those that are not of the current build, and of the others.
    fn changes_of(&self, codelet: &Manifest) -> [Changes; 2] {
        let [mut older, mut newest] = [Changes::default(), Changes::default()];
        for unit in &codelet.units {
            let Some(changes) = self.changes(&unit.id) else {
                continue;
            };
            match self.current.has_unit(&unit.id) {
                Some(false) => older.add(changes),
                _ => newest.add(changes),
            }
        }
        [older, newest]
    }

    /// A note if the codelet, or a unit that it holds, is of an older build.
    fn older(&self, codelet: &Manifest) -> Option<String> {
        let older = |unit: &PackageUnit| {
            self.current.has_unit(&unit.id) == Some(false) && self.changes(&unit.id).is_some()
        };
        let of: Vec<&PackageUnit> = codelet.units.iter().filter(|unit| older(unit)).collect();
        if self.current.holds(codelet) != Some(false) && of.is_empty() {
            return None;
        }
        let [changes, _] = self.changes_of(codelet);
        Some(if !changes.changed.is_empty() {
            format!(
                "it is of an older build: {} changed since, and this is the code before; capture it again for the new code",
                list(&changes.changed)
            )
        } else if of.is_empty() {
            "the last build has its region under another name: capture it again".to_owned()
        } else {
            let sources: BTreeSet<PathBuf> = of.iter().map(|u| u.source.clone().into()).collect();
            format!(
                "it is of an older build: the last one made other code of {}; capture it again for that",
                list(&sources)
            )
        })
    }

    /// The notes on one codelet; none of a codelet from elsewhere.
    pub fn on(&self, codelet: &Manifest) -> Vec<String> {
        if self.changes(&codelet.key.unit).is_none() {
            return Vec::new();
        }
        let [mut older, mut newest] = self.changes_of(codelet);
        let mut notes: Vec<String> = self.older(codelet).into_iter().collect();
        if !newest.changed.is_empty() {
            notes.push(format!(
                "{} changed since the build, and this is the code before: `cere instrument` builds it again",
                list(&newest.changed)
            ));
        }
        newest.gone.append(&mut older.gone);
        if !newest.gone.is_empty() {
            notes.push(gone(&newest.gone));
        }
        notes
    }

    /// The notes on `profile` and on the build that it is of.
    pub fn on_profile(&self, profile: &Profile) -> Vec<String> {
        let mut found = Changes::default();
        let units: BTreeSet<&str> = profile
            .regions
            .iter()
            .map(|r| r.key.unit.as_str())
            .collect();
        for unit in units {
            found.add(self.changes(unit).unwrap_or_default());
        }
        let name = profile.command.first();
        let name = name.map_or("the program", String::as_str);
        let ended = profile.ended.iter();
        let mut notes: Vec<String> = ended
            .map(|ended| format!("the profiled run of {name} ended with {ended}"))
            .collect();
        if !found.changed.is_empty() {
            notes.push(format!(
                "{} changed since the build: profile and codelets are of the code before; `cere instrument` builds it again",
                list(&found.changed)
            ));
        }
        if !found.gone.is_empty() {
            notes.push(gone(&found.gone));
        }
        notes
    }

    /// The notes on several codelets, each with the names that it belongs to.
    pub fn on_all<'m>(&self, codelets: impl IntoIterator<Item = &'m Manifest>) -> Vec<String> {
        let each = codelets.into_iter();
        grouped(each.map(|codelet| (codelet.name.as_str(), self.on(codelet))))
    }

    /// Those of them that say what is of an older build.
    pub fn on_older<'m>(&self, codelets: impl IntoIterator<Item = &'m Manifest>) -> Vec<String> {
        let older = |m: &Manifest| self.older(m).into_iter().collect();
        let each = codelets.into_iter();
        grouped(each.map(|codelet| (codelet.name.as_str(), older(codelet))))
    }
}

/// Each note with the names of the codelets that it is on.
pub fn grouped<'m>(notes: impl IntoIterator<Item = (&'m str, Vec<String>)>) -> Vec<String> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, notes) in notes {
        for note in notes {
            found.entry(note).or_default().push(name);
        }
    }
    let each = found.into_iter();
    each.map(|(note, names)| format!("{}: {note}", some(&names)))
        .collect()
}

fn gone(files: &BTreeSet<PathBuf>) -> String {
    format!(
        "{} {} gone since the build",
        list(files),
        if files.len() == 1 { "is" } else { "are" }
    )
}

/// Files as people know them here.
fn list(files: &BTreeSet<PathBuf>) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let shown = |file: &PathBuf| -> String {
        let short = file.strip_prefix(&here).unwrap_or(file);
        Path::new(short).display().to_string()
    };
    let names: Vec<String> = files.iter().map(shown).collect();
    some(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The first of `names`, and how many more there are.
pub fn some(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
