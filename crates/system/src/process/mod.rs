//! Starts processes and waits for them.
//!
//! | module | what |
//! |---|---|
//! | [`wait`] | the end of a child, or a time limit |
//! | [`inherited`] | the signals that this command's parent left ignored or blocked |
//! | [`supervise`] | a command in a process group of its own, with the terminal and the signals passed on |

pub mod inherited;
pub mod supervise;
pub mod wait;

use std::path::{Path, PathBuf};

/// The file of a program in PATH.
#[must_use]
pub fn in_path(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(&name));
    places.find(|place| place.is_file())
}
