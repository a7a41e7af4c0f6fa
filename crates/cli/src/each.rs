//! A command on several codelets, one after the other.

use anyhow::Result;
use cere_package::io::read_manifest;
use cere_store::codelets;
use cere_system::console::{note, print, progress};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How results are shown.
pub struct Shown<'a, T> {
    /// What is being done, and what was not, for people.
    pub words: [&'a str; 2],
    /// A result for people.
    pub text: fn(&T) -> String,
    /// A result for programs.
    pub json: &'a dyn Fn(&T) -> Value,
    /// All of them, with a heading.
    pub csv: fn(&[T]) -> String,
    /// Whether a result is not the original's.
    pub is_different: fn(&T) -> bool,
}

/// Shows what `one` makes of each file, as text, JSON or CSV. The status is 1 where it fails or differs on some; an error where it fails on the only one.
pub fn each<T>(
    files: &[PathBuf],
    (as_json, as_csv): (bool, bool),
    shown: &Shown<T>,
    one: impl Fn(&Path) -> Result<T>,
) -> Result<u8> {
    let mut all = Vec::new();
    for file in files {
        let name = codelets::display_name(file);
        let spinner = progress::spinner(format!("{} {name}", shown.words[0]));
        let made = one(file);
        spinner.finish_and_clear();
        match made {
            Ok(made) => {
                if !as_json && !as_csv {
                    print::text(&(shown.text)(&made))?;
                }
                all.push(made);
            }
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => note!("{}: {name}: {}", shown.words[1], print::error(&error)),
        }
    }
    if as_json {
        let all: Vec<Value> = all.iter().map(shown.json).collect();
        print::json(&all)?;
    }
    if as_csv {
        print::out(&(shown.csv)(&all))?;
    }
    let failed = all.len() < files.len() || all.iter().any(shown.is_different);
    Ok(u8::from(failed))
}

/// The first of the codelets of each region; what is left out is named.
pub fn one_of_each_region(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut regions: Vec<(String, u32)> = Vec::new();
    let mut kept = Vec::new();
    let mut left_out = Vec::new();
    for file in files {
        // A damaged one is reported when it is unpacked.
        let Ok(manifest) = read_manifest(&file) else {
            kept.push(file);
            continue;
        };
        let region = (manifest.key.unit, manifest.key.index);
        match regions.contains(&region) {
            true => left_out.push(manifest.name),
            false => {
                regions.push(region);
                kept.push(file);
            }
        }
    }
    if let Some(first) = left_out.first() {
        let more = if left_out.len() > 1 { ", ..." } else { "" };
        note!(
            "left out {} more codelets of the same regions ({first}{more}): name one to see it",
            left_out.len()
        );
    }
    kept
}
