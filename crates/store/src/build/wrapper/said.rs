//! Warnings of wrappers, once a build: a build of many files would print each many times.

use crate::state;
use anyhow::Result;
use cere_format::store::Store;
use cere_system::console::warning;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Stands in a warning's file for each time that it was not printed.
const AGAIN: u8 = 1;

fn directory(store: &Store) -> PathBuf {
    state::scratch(store).join("said")
}

/// Prints the warning, unless another compiler of the build has. Outside `cere instrument` there is no build to know.
pub fn once(store: &Store, message: &str) {
    let path = directory(store).join(state::hash(message));
    let new = OpenOptions::new().write(true).create_new(true).open(&path);
    match new {
        Ok(mut file) => {
            // The count at the end of the build is all that is lost.
            let _ = file.write_all(message.as_bytes());
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let counted = OpenOptions::new().append(true).open(&path);
            let _ = counted.and_then(|mut file| file.write_all(&[AGAIN]));
            return;
        }
        Err(_) => {}
    }
    warning!("{message}");
}

/// Begins a build: nothing has been said.
pub fn begin(store: &Store) -> Result<()> {
    let _ = std::fs::remove_dir_all(directory(store));
    state::make_directory(&directory(store))
}

/// Ends a build: the warnings, and how many compilers had each.
pub fn end(store: &Store) -> Vec<(String, usize)> {
    let entries = std::fs::read_dir(directory(store));
    let files = entries.into_iter().flatten().flatten();
    let mut said: Vec<_> = files
        .filter_map(|entry| std::fs::read(entry.path()).ok())
        .map(|bytes| {
            let (again, message): (Vec<u8>, Vec<u8>) = bytes.iter().partition(|b| **b == AGAIN);
            let message = String::from_utf8_lossy(&message).into_owned();
            (message, again.len() + 1)
        })
        .collect();
    said.sort();
    let _ = std::fs::remove_dir_all(directory(store));
    said
}
