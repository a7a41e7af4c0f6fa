//! The journal of a search, line by line. An interrupted search continues with the same proposals and the same outcomes in
//! the same order.

use crate::Variant;
use anyhow::{Context, Result};
use cere_store::state;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// The search proposed a variant.
    Proposed(u64, Variant),
    /// The outcome of a proposal was reported.
    Told(u64, Told),
}

/// An outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Time over that of the code as built; `None` if it failed.
    pub ratio: Option<f64>,
    /// Why it failed.
    pub reason: Option<String>,
    /// Hash of its machine code.
    pub code: Option<String>,
    /// Whether it was not measured because another variant has the same machine code.
    pub same: bool,
}

impl Told {
    /// A variant that failed for this reason.
    pub fn failed(reason: String, code: Option<String>) -> Self {
        Self {
            ratio: None,
            reason: Some(reason),
            code,
            same: false,
        }
    }

    /// A variant with the machine code of another one, which had this ratio.
    pub fn same_as(ratio: Option<f64>, code: String) -> Self {
        let failed = "another with the same code failed";
        Self {
            ratio,
            reason: ratio.is_none().then(|| failed.into()),
            code: Some(code),
            same: true,
        }
    }
}

/// The journal's file.
pub struct Journal {
    file: File,
}

impl Journal {
    /// Opens the file and returns its lines. A last line that was cut off when a command was killed is dropped.
    pub fn open(path: &Path) -> Result<(Self, Vec<Event>)> {
        let failed = || format!("cannot use {}", path.display());
        state::make_directory(path.parent().context("a path without a directory")?)?;
        let mut events = Vec::new();
        let mut length = 0;
        if let Ok(file) = File::open(path) {
            let mut reader = BufReader::new(file);
            let mut line = String::new();
            loop {
                line.clear();
                let read = reader.read_line(&mut line).with_context(failed)?;
                let Ok(event) = serde_json::from_str(&line) else {
                    break;
                };
                if !line.ends_with('\n') {
                    break;
                }
                length += read as u64;
                events.push(event);
            }
        }
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .with_context(failed)?;
        file.set_len(length).with_context(failed)?;
        Ok((Self { file }, events))
    }

    /// Adds a line.
    pub fn add(&mut self, event: &Event) -> Result<()> {
        let line = format!("{}\n", serde_json::to_string(event)?);
        self.file
            .write_all(line.as_bytes())
            .context("cannot write what the search has found")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/journal");
        let event = Event::Proposed(3, Variant::default());
        let (mut journal, events) = Journal::open(&path).unwrap();
        assert!(events.is_empty());
        journal.add(&event).unwrap();
        journal.file.write_all(b"{\"proposed\":[1").unwrap();
        let (mut journal, events) = Journal::open(&path).unwrap();
        assert_eq!(events, std::slice::from_ref(&event));
        journal.add(&event).unwrap();
        assert_eq!(Journal::open(&path).unwrap().1.len(), 2);
    }
}
