//! What comes next in a folder: the study of what is in it, or the step after what its store has.

use super::{Way, is_program, ways};
use crate::results::Database;
use crate::{codelets, state};
use anyhow::Result;
use cere_format::build::LinkCommand;
use cere_format::store::Store;
use std::path::{Path, PathBuf};

/// Where a user stands, the last thing done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was built with CERE.
    Fresh,
    /// Units, no profile; the programs of the build.
    Built(Vec<PathBuf>),
    /// A profile, no codelets; what was run, for a shell.
    Profiled(String),
    /// Codelets, no record of a replay.
    Captured,
    /// Records of replays.
    Replayed,
}

/// What is known in a folder.
#[derive(Debug)]
pub struct Place {
    /// How far its store is.
    pub stage: Stage,
    /// How it can be built, the way to propose first.
    pub ways: Vec<Way>,
}

/// Looks at `directory` and `store`.
pub fn look(directory: &Path, store: &Store) -> Result<Place> {
    Ok(Place {
        stage: stage(store)?,
        ways: ways(directory),
    })
}

fn stage(store: &Store) -> Result<Stage> {
    let built = std::fs::read_dir(store.current()).is_ok_and(|mut all| all.next().is_some());
    if !built {
        return Ok(Stage::Fresh);
    }
    if !store.profile().exists() {
        return Ok(Stage::Built(linked(store)));
    }
    if codelets::files(store)?.is_empty() {
        let profile = state::profile(store)?;
        let command = shell_words::join(&profile.command);
        return Ok(Stage::Profiled(command));
    }
    let records = match Database::existing(store)? {
        Some(database) => database.all()?,
        None => Vec::new(),
    };
    Ok(match records.is_empty() {
        true => Stage::Captured,
        false => Stage::Replayed,
    })
}

/// The programs that the build linked and that are still there.
fn linked(store: &Store) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(store.links())
        .into_iter()
        .flatten()
        .flatten();
    let output = |path: PathBuf| {
        let link: LinkCommand = state::read_json(&path).ok()?;
        is_program(&link.output).then_some(link.output)
    };
    let mut all: Vec<PathBuf> = entries.filter_map(|entry| output(entry.path())).collect();
    all.sort();
    all
}
