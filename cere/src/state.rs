//! Reading and writing the store: units, lock, JSON files written to a temporary name and renamed.

use anyhow::{Context, Result, bail};
use cere_format::build::{BUILD_VERSION, Unit};
use cere_format::store::Store;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Directory for files of compiles in progress.
pub fn scratch(store: &Store) -> PathBuf {
    store.root().join("tmp")
}

/// 32 hexadecimal digits of a hash over `text`.
pub fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Creates a directory of the store.
pub fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| {
        format!(
            "cannot create {}: give a writable place with --store",
            path.display()
        )
    })
}

/// Writes `value` to `path`, whole or not at all.
pub fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<()> {
    let parent = path.parent().context("a path without a directory")?;
    make_directory(parent)?;
    let mut file = tempfile::NamedTempFile::new_in(parent)
        .with_context(|| format!("cannot write in {}", parent.display()))?;
    serde_json::to_writer(&mut file, value)?;
    file.flush()?;
    file.persist(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// Reads JSON; the error names the file.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display()))
}

/// The exclusive right to write to a store; given back when dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Takes the store's lock, or says which process holds it.
pub fn lock(store: &Store) -> Result<Lock> {
    make_directory(store.root())?;
    let path = store.lock();
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .with_context(|| format!("cannot open the lock {}", path.display()))?;
    // SAFETY: flock takes no pointers; the descriptor is open for as long as `file` lives.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let mut holder = String::new();
        let _ = file.read_to_string(&mut holder);
        bail!(
            "the store {} is in use by process {}: wait for it, or use another --store",
            store.root().display(),
            holder.trim()
        );
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Lock { _file: file })
}

/// Every unit in the store, whatever its age.
pub fn all_units(store: &Store) -> Result<Vec<(std::time::SystemTime, Unit)>> {
    let directory = store.units();
    let Ok(entries) = fs::read_dir(&directory) else {
        bail!(
            "no build is recorded in {}: run `cere instrument -- <build command>` first",
            store.root().display()
        );
    };
    let mut units = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let unit: Unit = read_json(&path)?;
        if unit.version != BUILD_VERSION {
            bail!(
                "{} has version {}, this cere reads {BUILD_VERSION}: run `cere instrument` on a clean build",
                path.display(),
                unit.version
            );
        }
        units.push((fs::metadata(&path)?.modified()?, unit));
    }
    Ok(units)
}

/// The newest unit of each compile whose source still exists, by source.
pub fn current_units(store: &Store) -> Result<Vec<Unit>> {
    let mut named = HashSet::new();
    if let Ok(entries) = fs::read_dir(store.current()) {
        for entry in entries {
            named.insert(fs::read_to_string(entry?.path())?.trim().to_owned());
        }
    }
    let mut newest: BTreeMap<(PathBuf, Option<PathBuf>), (std::time::SystemTime, Unit)> =
        BTreeMap::new();
    for (time, unit) in all_units(store)? {
        if !named.is_empty() && !named.contains(&unit.id) {
            continue;
        }
        if !unit.source.exists() && unit.source.as_os_str() != "-" {
            continue;
        }
        let key = (unit.source.clone(), unit.command.output.clone());
        if newest.get(&key).is_none_or(|(other, _)| *other < time) {
            newest.insert(key, (time, unit));
        }
    }
    Ok(newest.into_values().map(|(_, unit)| unit).collect())
}
