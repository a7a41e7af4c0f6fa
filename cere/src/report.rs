//! `cere report`: profile, classes and replays of a store as one page that needs no network.

use crate::options::{self, Common};
use anyhow::{Context, Result};
use cere_console::{note, print};
use cere_report::Data;
use std::path::PathBuf;

/// Write profile, classes and replays as one HTML page
#[derive(clap::Args)]
#[command(after_help = "\
The page shows what the store holds: the last profile, the codelets of the current build, and the records of their\n\
replays at the flags of the capture (`cere check` makes them). It opens without a network, and can be sent as it is;\n\
it holds source lines of the regions.\n\
\n\
Examples:\n\
\x20 cere report -o report.html")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Largest error of a region that counts as accurately replayed, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "15", value_parser = options::percent)]
    max_error: f64,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    let data = Data::read(&store, options.max_error / 100.0)?;
    let page = cere_report::html(&data)?;
    std::fs::write(&options.output, &page)
        .with_context(|| format!("cannot write {}", options.output.display()))?;
    let file = std::path::absolute(&options.output)?;
    if options.common.json {
        print::json(&serde_json::json!({"file": file, "bytes": page.len(),
            "regions": data.profile.regions.len(), "codelets": data.codelets.len(), "records": data.records.len()}))?;
    } else {
        print::out(&format!("{}\n", file.display()))?;
    }
    for note in &data.notes {
        note!("{note}");
    }
    if data.compared.is_empty() {
        note!("no replays to compare with the run yet: `cere check` makes some");
    }
    Ok(0)
}
