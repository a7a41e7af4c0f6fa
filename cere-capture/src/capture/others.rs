//! Codelets of other commands that a capture replaces: a store has one of each region and invocation.

use cere_format::package::CapturedRun;
use cere_format::store::Store;
use cere_package::io::read_manifest;
use cere_store::{codelets, commands, notes};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The codelets of other commands that a store has: names and files by command.
pub struct Others(BTreeMap<Vec<String>, Vec<(String, PathBuf)>>);

impl Others {
    /// Those of `store` beside the codelets of `run`.
    pub fn than(run: &CapturedRun, store: &Store) -> Self {
        let mut found: BTreeMap<Vec<String>, Vec<(String, PathBuf)>> = BTreeMap::new();
        for file in codelets::files(store).unwrap_or_default() {
            if let Ok(manifest) = read_manifest(&file)
                && let Some(of) = manifest.run.filter(|of| !of.is_command_of(run))
            {
                let named = (manifest.name, file);
                found.entry(of.command).or_default().push(named);
            }
        }
        Self(found)
    }

    /// Notes on those that are no longer there after a capture of `run`.
    pub fn replaced(&self, run: &CapturedRun) -> Vec<String> {
        let gone = |file: &PathBuf| {
            let now = read_manifest(file).ok();
            now.is_none_or(|now| now.run.is_some_and(|of| of.is_command_of(run)))
        };
        let mut notes = Vec::new();
        for (command, codelets) in &self.0 {
            let gone: Vec<&str> = codelets
                .iter()
                .filter(|(_, file)| gone(file))
                .map(|(name, _)| name.as_str())
                .collect();
            if !gone.is_empty() {
                notes.push(format!(
                    "replaced {} of another command, `{}`: {}; another --store for each command keeps both",
                    commands::counted(gone.len()),
                    commands::shown(command),
                    notes::some(&gone)
                ));
            }
        }
        notes
    }
}
