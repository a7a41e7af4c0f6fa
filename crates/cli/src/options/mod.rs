//! Options that every subcommand has.

mod common;
mod cross;
mod geometry;
mod nodes;
mod numbers;
pub mod ranks;
mod replaying;
mod team;
mod timing;
pub mod utf8;

pub use common::{Common, existing_store};
pub use cross::CrossOptions;
pub use geometry::{caches, geometry};
pub use nodes::Nodes;
pub use numbers::{number, percent, seconds, share, tolerance};
pub use replaying::{Counting, Flags, Replaying, pipeline};
pub use team::Placement;
pub use timing::{Timing, energy_rounds, sandbox};

use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_system::console::print::{Verbosity, set_verbosity, verbosity};
use cere_system::console::screen::{is_wide, set_wide};
use std::path::{Path, PathBuf};

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
                bail!(
                    E4001,
                    "`cere {}` has no option --{name}",
                    subcommand.get_name()
                );
            }
        }
        Ok(())
    }
}

/// How much every subcommand writes to stderr, and how wide to stdout.
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
    /// Write tables and names whole, however wide the terminal is
    #[arg(long, global = true, display_order = 902)]
    wide: bool,
}

impl Messages {
    /// Sets the verbosity and the width of this process.
    pub fn apply(self) {
        if self.wide {
            set_wide();
        }
        set_verbosity(match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        });
    }
}

/// The options that give another `cere` process the same verbosity and width.
pub fn messages() -> Vec<&'static str> {
    let verbosity = match verbosity() {
        Verbosity::Quiet => Some("--quiet"),
        Verbosity::Normal => None,
        Verbosity::Verbose => Some("--verbose"),
    };
    let wide = is_wide().then_some("--wide");
    verbosity.into_iter().chain(wide).collect()
}

/// Fails if there can be no file at `path`, before work is done for it.
pub fn writable(path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!(E6524, "{} is a directory: name a file", path.display());
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    tempfile::tempfile_in(parent)
        .map(drop)
        .with_context(|| format!("no file can be written in {}", parent.display()))
}
