//! What became of the sources of a build since.

use cere_format::build::{SourceFile, Unit};
use cere_format::hexadecimal;
use cere_format::store::Store;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file of source, compared with that of the compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The same.
    Same,
    /// It has another content.
    Changed,
    /// It is not there.
    Gone,
}

/// Those of a unit's sources that are no longer what they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// With another content.
    pub changed: BTreeSet<PathBuf>,
    /// Not there.
    pub gone: BTreeSet<PathBuf>,
}

impl Changes {
    /// Of `unit`, which `store` records.
    pub fn of(store: &Store, unit: &Unit) -> Self {
        let mut found = Self::default();
        for file in files(unit) {
            match state(store, unit, &file) {
                State::Same => {}
                State::Changed => drop(found.changed.insert(file)),
                State::Gone => drop(found.gone.insert(file)),
            }
        }
        found
    }

    /// Adds what another unit lost.
    pub fn add(&mut self, other: Self) {
        self.changed.extend(other.changed);
        self.gone.extend(other.gone);
    }
}

/// The files of `unit`: what its record lists, else the source and what its regions are in.
fn files(unit: &Unit) -> BTreeSet<PathBuf> {
    match &unit.sources[..] {
        [] => {
            let regions = unit.regions.iter().map(|r| r.file.clone());
            let all = regions.chain([unit.source.clone()]);
            all.map(|file| unit.command.directory.join(file)).collect()
        }
        listed => listed.iter().map(|s| s.file.clone()).collect(),
    }
}

/// How `file`, one of `unit`, is now. Where the record does not list it, by its time against the record's.
pub fn state(store: &Store, unit: &Unit, file: &Path) -> State {
    // Standard input.
    if file.ends_with("-") {
        return State::Same;
    }
    let Ok(now) = std::fs::metadata(file) else {
        return State::Gone;
    };
    let same = match unit.sources.iter().find(|s| s.file == file) {
        Some(then) => is_same(then, &now),
        None => {
            let time = |of: std::io::Result<std::fs::Metadata>| of.and_then(|m| m.modified()).ok();
            let built: Option<SystemTime> = time(std::fs::metadata(store.unit_record(&unit.id)));
            built.is_none() || now.modified().ok() <= built
        }
    };
    match same {
        true => State::Same,
        false => State::Changed,
    }
}

fn is_same(then: &SourceFile, now: &std::fs::Metadata) -> bool {
    let seconds = now.mtime().saturating_mul(1_000_000_000);
    if then.size != now.size() {
        return false;
    }
    then.modified == seconds.saturating_add(now.mtime_nsec())
        || std::fs::read(&then.file)
            .is_ok_and(|content| hexadecimal(&Sha256::digest(content)) == then.sha256)
}

/// Whether the content of `file` is another one than that of a source when it was compiled, or it is not there.
pub fn is_other(then: &SourceFile, file: &Path) -> bool {
    std::fs::read(file).map_or(true, |content| {
        content.len() as u64 != then.size || hexadecimal(&Sha256::digest(content)) != then.sha256
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_decides() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.c");
        std::fs::write(&file, "1").unwrap();
        let then = SourceFile {
            file: file.clone(),
            size: 1,
            modified: 0,
            sha256: hexadecimal(&Sha256::digest("1")),
        };
        let now = || std::fs::metadata(&file).unwrap();
        assert!(is_same(&then, &now()));
        std::fs::write(&file, "2").unwrap();
        assert!(!is_same(&then, &now()));
        std::fs::write(&file, "1\n").unwrap();
        assert!(!is_same(&then, &now()));
    }
}
