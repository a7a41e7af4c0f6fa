//! `cere clean`: frees space of the store and of the user's cache.

use crate::ask;
use crate::options::Common;
use crate::show;
use anyhow::Result;
use cere_store::clean::{self, Alone, Limits};
use cere_system::console::{note, print};
use std::time::Duration;

/// Free space: caches, and what belongs to older builds
#[derive(clap::Args)]
#[command(after_help = "\
Removes, in this order, what killed commands left, the caches of the store and of the user (unpacked codelets and replays,\n\
which are made again when they are needed), and codelets and units of older builds. Each goes by the time since it was used,\n\
longest first. The current build, its profile and codelets, records of replays and tuned choices stay, and so do measurements of\n\
machines. Fails if another command works on the store.\n\
\n\
Examples:\n\
\x20 cere clean --dry-run\n\
\x20 cere clean --older-than 7d\n\
\x20 cere clean --to 2G")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Keep what was used within this time: 30m, 12h, 7d, 2w
    #[arg(long, value_name = "AGE", value_parser = clean::age)]
    older_than: Option<Duration>,
    /// Remove no more than needed for the store and the user's cache to take at most this together: 500M, 2G
    #[arg(long, value_name = "SIZE", value_parser = clean::bytes)]
    to: Option<u64>,
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove the current build, its profile, codelets, records and tuned choices as well. Asks first
    #[arg(long, conflicts_with_all = ["older_than", "to"])]
    all: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    let limits = Limits {
        older_than: options.older_than,
        to: options.to,
        all: options.all,
    };
    let alone = match options.dry_run {
        true => None,
        false => Some(Alone::lock(&store)?),
    };
    let plan = clean::plan(&store, &limits)?;
    if let Some(alone) = &alone {
        let question = format!(
            "cere: remove all of {}, the current build, its results and choices included?",
            store.root().display()
        );
        if options.all && !options.yes && !ask::agrees(&question, "--yes")? {
            return Ok(1);
        }
        clean::remove(&plan, alone)?;
    }
    if options.common.json {
        print::json(&show::clean::json(&plan, alone.is_some()))?;
    } else {
        print::out(&show::clean::text(&plan, alone.is_some()))?;
    }
    let left = plan.before.saturating_sub(plan.bytes());
    if let Some(to) = options.to.filter(|to| left > *to) {
        note!(
            "{} would be less than {} needs: the rest is of the current build, or was used too recently; `cere clean --all` removes it",
            show::clean::bytes(to),
            show::clean::bytes(left)
        );
    }
    Ok(0)
}
