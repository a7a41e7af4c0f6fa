//! What a build left beside its units: images with code of no unit, objects that others have made since, and files of compilers
//! that the wrappers did not see.

use crate::build::plain::{self, Plain};
use crate::build::units;
use crate::state;
use cere_format::build::{LinkCommand, Unit};
use cere_format::store::Store;
use object::{Object, ObjectSection};
use serde::Serialize;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

fn since(metadata: std::io::Result<Metadata>, start: SystemTime) -> bool {
    metadata.is_ok_and(|m| m.is_file() && m.modified().is_ok_and(|time| time >= start))
}

/// Number of links from `start` on, and the code without units in what they made.
pub fn images(store: &Store, start: SystemTime) -> (usize, Vec<Plain>) {
    let entries = std::fs::read_dir(store.links());
    let links = entries.into_iter().flatten().flatten();
    let links: Vec<LinkCommand> = links
        .filter(|entry| since(entry.metadata(), start))
        .filter_map(|entry| state::read_json(&entry.path()).ok())
        .collect();
    let plain = links.iter().filter_map(|link| {
        let bytes = std::fs::read(&link.output).ok()?;
        // What is no image that can be read has no code to speak of.
        plain::of(&link.output, &bytes, store).ok().flatten()
    });
    (links.len(), plain.collect())
}

/// The units whose object is there and holds them no more.
pub fn replaced(units: &[Unit]) -> Vec<&Unit> {
    let mut known: HashMap<&Path, Option<Vec<String>>> = HashMap::new();
    let mut gone = Vec::new();
    for unit in units {
        let Some(output) = &unit.command.output else {
            continue;
        };
        let held = known
            .entry(output)
            .or_insert_with(|| units::of(&std::fs::read(output).ok()?).ok());
        if held.as_ref().is_some_and(|ids| !ids.contains(&unit.id)) {
            gone.push(unit);
        }
    }
    gone
}

/// An object or image that a build made without the wrappers.
#[derive(Debug, Clone, Serialize)]
pub struct Stray {
    /// The file.
    pub file: PathBuf,
    /// What its compilers wrote into it.
    pub compiler: String,
}

/// Directory entries that are looked at.
const LOOKED_AT: usize = 50_000;
/// Most bytes of a file that is looked into.
const LARGE: u64 = 1 << 30;

/// Objects and images below `directory` that were made from `start` on and hold no unit.
pub fn strays(directory: &Path, store: &Store, start: SystemTime) -> Vec<Stray> {
    let mut waiting = vec![directory.to_owned()];
    let mut looked_at = 0;
    let mut found = Vec::new();
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > LOOKED_AT {
                return found;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && path != store.root() => waiting.push(path),
                Ok(kind) if kind.is_file() && since(entry.metadata(), start) => {
                    found.extend(stray(path));
                }
                _ => {}
            }
        }
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    found
}

fn stray(path: PathBuf) -> Option<Stray> {
    let mut magic = [0; 4];
    let mut opened = File::open(&path).ok()?;
    opened.read_exact(&mut magic).ok()?;
    if magic != *b"\x7fELF" || opened.metadata().ok()?.len() > LARGE {
        return None;
    }
    let bytes = std::fs::read(&path).ok()?;
    if !units::of(&bytes).ok()?.is_empty() {
        return None;
    }
    let file = object::File::parse(&*bytes).ok()?;
    let comment = file.section_by_name(".comment")?.data().ok()?.to_vec();
    let comment = String::from_utf8_lossy(&comment);
    let mut compilers: Vec<&str> = comment
        .split('\0')
        .filter(|text| !text.is_empty())
        .collect();
    compilers.dedup();
    Some(Stray {
        compiler: compilers.join(", "),
        file: path,
    })
}
