//! Names that are not UTF-8. Commands, directories and files are kept as text (JSON), so such names are refused before
//! anything runs.

use anyhow::{Context, Result};
use cere_catalogue::bail;
use std::ffi::OsStr;
use std::path::Path;

/// Fails if an argument, the working directory or the path of this executable is not UTF-8.
pub fn check() -> Result<()> {
    for argument in std::env::args_os() {
        if !whole(&argument) {
            bail!(
                E4014,
                "the argument {argument:?} is not UTF-8, and what CERE keeps is text: give the file another name, or a link with another \
                 name (`ln -s`)"
            );
        }
    }
    let here = std::env::current_dir().context("the directory that this runs in is gone")?;
    directory("this runs in", &here)?;
    match std::env::current_exe() {
        Ok(own) => directory("cere is installed in", own.parent().unwrap_or(&own)),
        Err(_) => Ok(()),
    }
}

/// Fails if the directory's name is not UTF-8; `what` describes the directory in the error.
pub fn directory(what: &str, path: &Path) -> Result<()> {
    if !whole(path.as_os_str()) {
        bail!(
            E4014,
            "the directory that {what} is called {path:?}, which is not UTF-8, and what CERE keeps is text: give it another name"
        );
    }
    Ok(())
}

fn whole(name: &OsStr) -> bool {
    name.to_str().is_some()
}
