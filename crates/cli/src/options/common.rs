//! `--store` and `--json`, which every subcommand has.

use super::utf8;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::store::Store;
use std::path::{Path, PathBuf};

/// `--store` and `--json`.
#[derive(clap::Args, Debug, Clone)]
pub struct Common {
    /// Directory of the store
    #[arg(long, value_name = "DIR", default_value = ".cere")]
    pub store: PathBuf,
    /// Write machine-readable output to stdout
    #[arg(long)]
    pub json: bool,
}

impl Common {
    /// The store, by an absolute path; it need not exist.
    pub fn store(&self) -> Result<Store> {
        store(&self.store)
    }

    /// The store, which has to exist.
    pub fn existing_store(&self) -> Result<Store> {
        existing_store(&self.store)
    }
}

/// The store in `path`, by an absolute path; it need not exist.
fn store(path: &Path) -> Result<Store> {
    let path = std::path::absolute(path)
        .with_context(|| format!("cannot make --store {} absolute", path.display()))?;
    // Records name paths in the store, so that there should be one name for it.
    let whole = path.canonicalize().ok();
    let parent = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let root = whole.or_else(parent).unwrap_or(path);
    utf8::directory("holds the store", &root)?;
    Ok(Store::new(root))
}

/// The same, if it exists.
pub fn existing_store(path: &Path) -> Result<Store> {
    let store = store(path)?;
    if !store.root().is_dir() {
        bail!(
            E4002,
            "there is no store {}: run `cere instrument -- <build command>` first, or name one with --store",
            store.root().display()
        );
    }
    Ok(store)
}
