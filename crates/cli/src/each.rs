//! A command on several codelets, one after the other.

use anyhow::Result;
use cere_store::codelets;
use cere_system::console::{note, print, progress};
use std::path::{Path, PathBuf};

/// What `one` makes of each file, shown by `shown` at once, and whether it failed on some; an error where it failed on the only
/// one. `words`: what is being done, and what was not, for people.
pub fn each<T>(
    files: &[PathBuf],
    words: [&str; 2],
    one: impl Fn(&Path) -> Result<T>,
    shown: impl Fn(&T) -> Result<()>,
) -> Result<(Vec<T>, bool)> {
    let mut all = Vec::new();
    for file in files {
        let name = codelets::display_name(file);
        let spinner = progress::spinner(format!("{} {name}", words[0]));
        let made = one(file);
        spinner.finish_and_clear();
        match made {
            Ok(made) => {
                shown(&made)?;
                all.push(made);
            }
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => note!("{}: {name}: {}", words[1], print::error(&error)),
        }
    }
    let failed = all.len() < files.len();
    Ok((all, failed))
}
