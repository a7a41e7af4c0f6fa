//! `cere codelets`, and how codelets lie in the store.

use crate::current::Current;
use crate::options::Common;
use crate::{print, state};
use anyhow::{Context, Result, bail};
use cere_format::package::{Manifest, PACKAGE_EXTENSION};
use cere_format::replay::Verdict;
use cere_format::store::Store;
use cere_format::untrusted::is_plain;
use cere_package::io::read_manifest;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// List the codelets in the store
#[derive(clap::Args)]
#[command(
    after_help = "A codelet stays in the store when the program is built anew. It is `current` as long as the last\nbuild has the very region, under this name, that it was captured of, and `older` from then on. The last\nverdict is that of the last replay without --flags, --passes and --no-check.\n\nExamples:\n  cere codelets --json\n  cere codelets --prune"
)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Remove the codelets that are not of the current build
    #[arg(long)]
    prune: bool,
}

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
}

/// What the last replay of a codelet in the store found: the last one at the flags of the capture, with its result
/// compared. Other flags may well change the result, which says nothing of the codelet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LastReplay {
    /// Its verdict.
    pub verdict: Verdict,
}

impl Listed {
    /// The entry for `file`.
    pub fn of(manifest: &Manifest, file: &Path, current: &Current) -> Result<Self> {
        let metadata =
            std::fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
        let last: Option<LastReplay> = state::read_json(&verdict_of(file)).ok();
        Ok(Self {
            name: manifest.name.clone(),
            region: manifest.region_name.clone(),
            invocation: manifest.invocation,
            pages: manifest.pages,
            file: file.to_owned(),
            bytes: metadata.len(),
            in_vivo_seconds: manifest.in_vivo.map(|t| t.seconds),
            verdict: last.map(|l| l.verdict),
            current: current.holds(manifest),
        })
    }
}

/// Longest file name, extension left out.
const LONGEST: usize = 200;

/// The file of the codelet `name`: what a file name does not bear well is written as `%` and two digits.
pub fn file_of(store: &Store, name: &str) -> PathBuf {
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
    store
        .codelets()
        .join(format!("{encoded}.{PACKAGE_EXTENSION}"))
}

/// The name of the codelet in `file`, if the file's name tells it.
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

/// What to call the codelet in `file`, which may be damaged.
pub fn called(file: &Path) -> String {
    match read_manifest(file) {
        Ok(manifest) => manifest.name,
        Err(_) => name_of(file).unwrap_or_else(|| file.display().to_string()),
    }
}

/// Where the last verdict on a codelet in the store lies.
pub fn verdict_of(file: &Path) -> PathBuf {
    file.with_extension("verdict")
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
        let hidden = path
            .file_name()
            .is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|e| e == PACKAGE_EXTENSION) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Names and files of the codelets in the store; damaged ones whose file does not tell the name are left out.
pub fn names(store: &Store) -> Result<Vec<(String, PathBuf)>> {
    let named = |file: PathBuf| {
        let name = name_of(&file).or_else(|| read_manifest(&file).ok().map(|m| m.name))?;
        Some((name, file))
    };
    Ok(files(store)?.into_iter().filter_map(named).collect())
}

/// Codelets as a table.
pub fn table(codelets: &[Listed]) -> String {
    let rows: Vec<Vec<String>> = codelets
        .iter()
        .map(|c| {
            vec![
                c.name.clone(),
                c.pages.to_string(),
                format!("{:.1} KiB", c.bytes as f64 / 1024.0),
                c.in_vivo_seconds.map_or("-".into(), print::time),
                c.verdict.map_or("-", crate::replay::word).to_owned(),
                match c.current {
                    Some(true) => "current",
                    Some(false) => "older",
                    None => "-",
                }
                .to_owned(),
            ]
        })
        .collect();
    print::table_of_names(
        &[
            "codelet",
            "pages",
            "size",
            "in vivo",
            "<last verdict",
            "<build",
        ],
        rows,
    )
}

/// Removes those of `codelets` that are not of the current build; gives back the others.
fn prune(codelets: Vec<Listed>) -> Result<Vec<Listed>> {
    if codelets.iter().any(|c| c.current.is_none()) {
        bail!(
            "the store records no build whose sources are there, so that no codelet is older than it: run `cere instrument -- <build command>` first"
        );
    }
    let (current, older): (Vec<_>, Vec<_>) =
        codelets.into_iter().partition(|c| c.current == Some(true));
    for codelet in older {
        std::fs::remove_file(&codelet.file)
            .with_context(|| format!("cannot remove {}", codelet.file.display()))?;
        let _ = std::fs::remove_file(verdict_of(&codelet.file));
        eprintln!("cere: removed {}", codelet.name);
    }
    Ok(current)
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.existing_store()?;
    let _lock = options.prune.then(|| state::lock(&store)).transpose()?;
    let current = Current::of(&store)?;
    let (mut sound, mut damaged) = (Vec::new(), Vec::new());
    for file in files(&store)? {
        let listed = read_manifest(&file)
            .map_err(anyhow::Error::from)
            .and_then(|manifest| Listed::of(&manifest, &file, &current));
        match listed {
            Ok(listed) => sound.push(listed),
            Err(error) => damaged.push((file, error)),
        }
    }
    if options.prune {
        sound = prune(sound)?;
    }
    if options.common.json {
        print::json(&sound)?;
    } else if sound.is_empty() && damaged.is_empty() {
        eprintln!("cere: no codelets yet: `cere capture -- ./app` takes some");
    } else {
        print::out(&table(&sound))?;
    }
    for (file, error) in &damaged {
        eprintln!("cere: damaged: {}: {}", file.display(), print::error(error));
    }
    if !damaged.is_empty() {
        bail!(
            "{} codelets are damaged: remove them and capture again",
            damaged.len()
        );
    }
    Ok(0)
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
