//! `cere work DIR CHUNK`: a worker of a job on several machines. It is started by `cere measure --on` and `cere tune --on`.

use anyhow::Result;
use cere_catalogue::bail;
use cere_nodes::Job;
use cere_predict::subset::measure;
use cere_tune::tuning::nodes;
use std::path::PathBuf;

/// Do a chunk of a job
#[derive(clap::Args)]
#[command(
    hide = true,
    after_help = "\
Example:
\x20 cere work here.json.work 3"
)]
pub struct Options {
    /// The job
    directory: PathBuf,
    /// Number of the chunk
    chunk: usize,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let events = cere_system::console::events();
    match Job::open(&options.directory)?.kind() {
        measure::KIND => measure::work(&options.directory, options.chunk, &events)?,
        nodes::KIND => nodes::work(&options.directory, options.chunk, &events)?,
        other => bail!(
            E7104,
            "{} is a job of kind {other}, which this cere does not know: install the version that made it",
            options.directory.display()
        ),
    }
    Ok(0)
}
