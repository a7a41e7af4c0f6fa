//! `cere report`: profile, classes and replays of a store, or a subset, as one page that needs no network.

use crate::options::{self, Common};
use anyhow::{Context, Result};
use cere_predict::subset::Measurement;
use cere_report::Data;
use cere_report::subset::{self, SubsetData};
use cere_system::console::{note, print, progress};
use std::path::{Path, PathBuf};

/// Write profile, classes and replays as one HTML page
#[derive(clap::Args)]
#[command(after_help = "\
The page shows what the store holds: the last profile, the codelets of the current build, and the records of their\n\
replays at the flags of the capture (`cere check` makes them). It opens without a network, and can be sent as it is;\n\
it holds source lines of the regions.\n\
\n\
With --subset: dendrogram, clusters, and with --machine predicted and measured programs; if a machine measured all codelets,\n\
errors by number of clusters beside those of random partitions.\n\
\n\
Examples:\n\
\x20 cere report -o report.html\n\
\x20 cere report --subset nas.cere --machine zen3.json zen5.json -o nas.html --svg pictures")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Largest error of a region that counts as accurately replayed, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "15", value_parser = options::percent)]
    max_error: f64,
    /// Show a subset, an archive of `cere subset`, instead of a store
    #[arg(long, value_name = "FILE")]
    subset: Option<PathBuf>,
    /// With --subset: files of `cere measure`
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "subset")]
    machine: Vec<PathBuf>,
    /// With --subset: also write the pictures into this directory
    #[arg(long, value_name = "DIR", requires = "subset")]
    svg: Option<PathBuf>,
    /// With --subset: seed of the random partitions
    #[arg(long, value_name = "N", default_value_t = 1, requires = "subset")]
    seed: u64,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if let Some(file) = &options.subset {
        return of_subset(options, file);
    }
    let store = options.common.store()?;
    let data = Data::read(&store, options.max_error / 100.0)?;
    let page = cere_report::html(&data)?;
    std::fs::write(&options.output, &page)
        .with_context(|| format!("cannot write {}", options.output.display()))?;
    let file = std::path::absolute(&options.output)?;
    if options.common.json {
        print::json(&serde_json::json!({"file": file, "bytes": page.len(),
            "regions": data.profile.regions.len(), "codelets": data.codelets.len(), "records": data.records.len(),
            "notes": data.notes}))?;
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

/// With `--subset`.
fn of_subset(options: &Options, file: &Path) -> Result<u8> {
    let machines: Vec<Measurement> = options
        .machine
        .iter()
        .map(|file| Measurement::read(file))
        .collect::<Result<_>>()?;
    let spinner = progress::spinner("reading".into());
    let data = SubsetData::read(file, &machines, options.seed);
    spinner.finish_and_clear();
    let data = data?;
    let page = subset::html(&data)?;
    std::fs::write(&options.output, &page)
        .with_context(|| format!("cannot write {}", options.output.display()))?;
    if let Some(directory) = &options.svg {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        for picture in data.pictures() {
            let path = directory.join(format!("{}.svg", picture.name));
            std::fs::write(&path, picture.svg)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    let file = std::path::absolute(&options.output)?;
    match options.common.json {
        true => print::json(&serde_json::json!({"file": file, "bytes": page.len(),
            "points": data.subset.points.len(), "clusters": data.subset.clusters.len(), "machines": data.machines.len()}))?,
        false => print::out(&format!("{}\n", file.display()))?,
    }
    Ok(0)
}
