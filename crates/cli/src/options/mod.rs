//! Options that every subcommand has.

mod geometry;
mod nodes;
mod team;
mod timing;
pub mod utf8;

pub use geometry::geometry;
pub use nodes::Nodes;
pub use team::{Placement, TeamOptions};
pub use timing::{Timing, sandbox};

use anyhow::{Context, Result, bail};
use cere_format::store::Store;
use cere_system::console::print::{Verbosity, set_verbosity, verbosity};
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

/// The same options before the subcommand.
#[derive(clap::Args, Debug, Clone)]
pub struct Before {
    /// Directory of the store
    #[arg(long, value_name = "DIR", global = true, hide = true)]
    store: Option<PathBuf>,
    /// Write machine-readable output to stdout
    #[arg(long, global = true, hide = true)]
    json: bool,
}

impl Before {
    /// Fails if one is given with a subcommand that has no such option.
    pub fn check(&self, subcommand: &clap::Command) -> Result<()> {
        let given = [("store", self.store.is_some()), ("json", self.json)];
        for (name, _) in given.into_iter().filter(|(_, given)| *given) {
            if !subcommand.get_arguments().any(|own| own.get_id() == name) {
                bail!("`cere {}` has no option --{name}", subcommand.get_name());
            }
        }
        Ok(())
    }
}

/// How much every subcommand writes to stderr.
#[derive(clap::Args, Debug, Clone, Copy)]
pub struct Messages {
    /// Write no notes and no progress to stderr: warnings and errors only
    #[arg(short, long, global = true, display_order = 900)]
    quiet: bool,
    /// Write each step to stderr as well: compilers and programs that are run, what the cache has
    #[arg(
        short,
        long,
        global = true,
        display_order = 901,
        conflicts_with = "quiet"
    )]
    verbose: bool,
}

impl Messages {
    /// Sets the verbosity of this process.
    pub fn apply(self) {
        set_verbosity(match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        });
    }
}

/// The option that gives another `cere` process the same verbosity.
pub fn messages() -> Option<&'static str> {
    match verbosity() {
        Verbosity::Quiet => Some("--quiet"),
        Verbosity::Normal => None,
        Verbosity::Verbose => Some("--verbose"),
    }
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
            "there is no store {}: run `cere instrument -- <build command>` first, or name one with --store",
            store.root().display()
        );
    }
    Ok(store)
}

/// Fails if there can be no file at `path`, before work is done for it.
pub fn writable(path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!("{} is a directory: name a file", path.display());
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    tempfile::tempfile_in(parent)
        .map(drop)
        .with_context(|| format!("no file can be written in {}", parent.display()))
}

/// Parses a number of seconds above zero.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1e9 => Ok(value),
        _ => Err("a number of seconds above 0 is needed".into()),
    }
}

/// Parses a number of per cent, 0 or more.
pub fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err("a number of per cent, 0 or more, is needed".into()),
    }
}

/// Parses a relative error.
pub fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..1.0).contains(&value) => Ok(value),
        _ => Err("a relative error from 0 up to 1 is needed".into()),
    }
}
