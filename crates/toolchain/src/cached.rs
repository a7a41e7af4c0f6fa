//! Files of the cache, named by a hash of their inputs and written atomically.

use crate::error::{CompileError, io};
use cere_system::console::detail;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file `name` of `cache`. If it is missing, `make` makes it at the given path in a scratch directory.
pub fn get<E: From<CompileError>>(
    cache: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let file = cache.join(name);
    if file.exists() {
        detail!("takes {} from the cache", file.display());
        return Ok(file);
    }
    // Another replay may have made the same file meanwhile. The first one stays, because that replay's sandbox may refer to
    // it already.
    publish(cache, &file, make, |made| {
        match std::fs::hard_link(made, &file) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            // The file system has no hard links.
            Err(_) => std::fs::rename(made, &file),
            Ok(()) => Ok(()),
        }
    })
}

/// Like [`get`], but makes the file again if it exists.
pub fn replace<E: From<CompileError>>(
    cache: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let file = cache.join(name);
    publish(cache, &file, make, |made| std::fs::rename(made, &file))
}

/// What this process has read of files of the cache. Their names are their content, so each is read once.
pub struct Known<T>(Mutex<BTreeMap<PathBuf, T>>);

impl<T: Clone> Known<T> {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What `read` finds in `file`, or found there before.
    pub fn of<E>(&self, file: &Path, read: impl FnOnce(&Path) -> Result<T, E>) -> Result<T, E> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(file) {
            return Ok(found.clone());
        }
        let found = read(file)?;
        known.insert(file.to_owned(), found.clone());
        Ok(found)
    }
}

impl<T: Clone> Default for Known<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn publish<E: From<CompileError>>(
    cache: &Path,
    file: &Path,
    make: impl FnOnce(&Path) -> Result<(), E>,
    name: impl FnOnce(&Path) -> std::io::Result<()>,
) -> Result<PathBuf, E> {
    let scratch = tempfile::Builder::new()
        .prefix("make.")
        .tempdir_in(cache)
        .map_err(io("write into", cache))?;
    let made = scratch.path().join("made");
    make(&made)?;
    name(&made).map_err(io("write", file))?;
    Ok(file.to_owned())
}
