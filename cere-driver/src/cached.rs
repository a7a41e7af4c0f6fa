//! Files of the cache, each named by what it is made of: there whole or not at all.

use crate::{CompileError, io};
use cere_console::detail;
use std::path::{Path, PathBuf};

/// The file `name` of `cache`; if it is not there, `make` makes it at the path that it is given, in a scratch
/// directory.
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
    // Another replay may have been faster: either file is the same, and the first stays, which a sandbox of that replay may
    // name by now.
    publish(cache, &file, make, |made| {
        match std::fs::hard_link(made, &file) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            // A file system without hard links.
            Err(_) => std::fs::rename(made, &file),
            Ok(()) => Ok(()),
        }
    })
}

/// Like [`get`], but makes the file anew if it is there.
pub fn replace<E: From<CompileError>>(
    cache: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let file = cache.join(name);
    publish(cache, &file, make, |made| std::fs::rename(made, &file))
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
