//! Files of the cache, each named by what it is made of: there whole or not at all.

use crate::{CompileError, io};
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
        return Ok(file);
    }
    replace(cache, name, make)
}

/// Like [`get`], but makes the file anew if it is there.
pub fn replace<E: From<CompileError>>(
    cache: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let scratch = tempfile::Builder::new()
        .prefix("make.")
        .tempdir_in(cache)
        .map_err(io("write into", cache))?;
    let (made, file) = (scratch.path().join("made"), cache.join(name));
    make(&made)?;
    // Another replay may have been faster: either file is the same.
    std::fs::rename(&made, &file).map_err(io("write", &file))?;
    Ok(file)
}
