//! `cere mcp`: a server for agents.

use crate::options::{existing_store, seconds};
use anyhow::{Context, Result};
use cere_mcp::Limits;
use std::path::PathBuf;

/// Serve agents by the Model Context Protocol, on stdin and stdout
#[derive(clap::Args)]
#[command(after_help = "\
Tools: regions, codelets, source, asm, counts, try_patch, try_flags. Edits are tried as `cere try --untrusted` does: compilers and code\n\
run in the sandbox, and no file but the store's is written. Programs such as Claude or editors start the server themselves; the guide\n\
has an example.\n\
\n\
Example:\n\
\x20 cere mcp --budget 1800 --tries 200")]
pub struct Options {
    /// Directory of the store
    #[arg(long, value_name = "DIR", default_value = ".cere")]
    store: PathBuf,
    /// Seconds of compiles and replays in total
    #[arg(long, value_name = "S", default_value_t = 600.0, value_parser = seconds)]
    budget: f64,
    /// Longest call, in seconds
    #[arg(long, value_name = "S", default_value_t = 120.0, value_parser = seconds)]
    seconds: f64,
    /// Edits and flags that are tried, at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    tries: u32,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = existing_store(&options.store)?;
    let command = std::env::current_exe().context("cannot find this command's own file")?;
    let limits = Limits {
        budget: options.budget,
        seconds: options.seconds,
        tries: options.tries,
    };
    cere_mcp::serve(command, store, limits)?;
    Ok(0)
}
