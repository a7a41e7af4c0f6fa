//! The files of codelets in the store.

use crate::results::{Database, Record};
use crate::state;
use anyhow::{Context, Result};
use cere_format::package::{Manifest, PACKAGE_EXTENSION};
use cere_format::replay::Verdict;
use cere_format::store::Store;
use cere_format::untrusted::is_plain;
use cere_package::io::read_manifest;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A codelet as listed.
#[derive(Debug, Clone, Serialize)]
pub struct Listed {
    /// Its name: the region's and `:<invocation>`.
    pub name: String,
    /// The region's name.
    pub region: String,
    /// Which invocation.
    pub invocation: u64,
    /// Number of captured pages.
    pub pages: u64,
    /// Its file, absolute.
    pub file: PathBuf,
    /// Size of the file.
    pub bytes: u64,
    /// The invocation's time in the application, if it is known.
    pub in_vivo_seconds: Option<f64>,
    /// Verdict of the last replay at the flags of the capture, if there was one.
    pub verdict: Option<Verdict>,
    /// Whether it is of the current build; none if the store knows no build.
    pub current: Option<bool>,
    /// The command that it was captured in, program and arguments; none if that is not recorded.
    pub command: Option<Vec<String>>,
    /// Where that ran.
    pub directory: Option<String>,
    /// What its user should know: see [`crate::notes`].
    pub notes: Vec<String>,
}

/// What the last replay of each codelet at the flags of its capture found, with its result compared. Other flags may well
/// change the result, which says nothing of the codelet.
#[derive(Default)]
pub struct Verdicts(HashMap<String, Vec<(String, Verdict)>>);

impl Verdicts {
    /// Reads the records of `store`.
    pub fn of(store: &Store) -> Result<Self> {
        let records = match Database::existing(store)? {
            Some(database) => database.all()?,
            None => Vec::new(),
        };
        let as_captured = |r: &Record| {
            let built = r.setting.flags.is_empty() && r.setting.passes.is_none();
            built && r.verdict != Verdict::Unchecked
        };
        let mut found: HashMap<String, Vec<(String, Verdict)>> = HashMap::new();
        for record in records.into_iter().filter(as_captured) {
            let of = found.entry(record.codelet).or_default();
            of.push((record.sha256, record.verdict));
        }
        Ok(Self(found))
    }

    /// The last verdict on the codelet `name` in `file`; none if this very file was not replayed.
    fn last(&self, name: &str, file: &Path) -> Result<Option<Verdict>> {
        let Some(records) = self.0.get(name) else {
            return Ok(None);
        };
        let sha256 = state::hash_file(file)?;
        let last = records.iter().rev().find(|(of, _)| *of == sha256);
        Ok(last.map(|(_, verdict)| *verdict))
    }
}

impl Listed {
    /// The entry for `file`, whose manifest is `manifest`; `current` and `notes`: see the fields.
    pub fn of(
        manifest: &Manifest,
        file: &Path,
        (current, notes): (Option<bool>, Vec<String>),
        verdicts: &Verdicts,
    ) -> Result<Self> {
        let metadata =
            std::fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Self {
            name: manifest.name.clone(),
            region: manifest.region_name.clone(),
            invocation: manifest.invocation,
            pages: manifest.pages,
            file: file.to_owned(),
            bytes: metadata.len(),
            in_vivo_seconds: manifest.in_vivo.map(|t| t.seconds),
            verdict: verdicts.last(&manifest.name, file)?,
            current,
            command: manifest.run.as_ref().map(|run| run.command.clone()),
            directory: manifest.run.as_ref().map(|run| run.directory.clone()),
            notes,
        })
    }
}

/// Longest file name, extension left out.
const LONGEST: usize = 200;

/// The file of the codelet `name`.
pub fn file_of(store: &Store, name: &str) -> PathBuf {
    store
        .codelets()
        .join(format!("{}.{PACKAGE_EXTENSION}", encoded(name)))
}

/// `name` for a file: what a file name does not bear well is written as `%` and two digits.
pub fn encoded(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"@:._+-#~,=".contains(&byte) {
            encoded.push(byte as char);
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    if encoded.starts_with('.') {
        encoded.replace_range(..1, "%2e");
    }
    if encoded.len() > LONGEST {
        encoded.truncate(LONGEST - 33);
        encoded = format!("{encoded}!{}", state::hash(name));
    }
    encoded
}

/// The name of the codelet in `file`, if the file's name holds it.
fn name_of(file: &Path) -> Option<String> {
    let stem = file.file_stem()?.to_str()?;
    if stem.contains('!') {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = stem.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|name| name.chars().all(is_plain))
}

/// The name to show for the codelet in `file`, which may be damaged.
pub fn display_name(file: &Path) -> String {
    match read_manifest(file) {
        Ok(manifest) => manifest.name,
        Err(_) => name_of(file).unwrap_or_else(|| file.display().to_string()),
    }
}

/// The packages in the store, sorted; none if there are no codelets yet.
pub fn files(store: &Store) -> Result<Vec<PathBuf>> {
    let directory = store.codelets();
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => {
            return Err(e).with_context(|| format!("cannot read {}", directory.display()));
        }
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if !state::is_hidden(&path) && path.extension().is_some_and(|e| e == PACKAGE_EXTENSION) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Names and files of the codelets in the store; damaged ones whose file name does not hold it are left out.
pub fn names(store: &Store) -> Result<Vec<(String, PathBuf)>> {
    let named = |file: PathBuf| {
        let name = name_of(&file).or_else(|| read_manifest(&file).ok().map(|m| m.name))?;
        Some((name, file))
    };
    Ok(files(store)?.into_iter().filter_map(named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_files_and_back() {
        let store = Store::new("/s");
        for name in ["f@a.c:1:1", "g<int, a/b>@x.h:2#2:12", ".a%@b"] {
            assert_eq!(name_of(&file_of(&store, name)).as_deref(), Some(name));
        }
        let file = file_of(&store, &"long name ".repeat(40));
        assert!(file.file_name().unwrap().len() < 255);
        assert_eq!(name_of(&file), None);
    }
}
