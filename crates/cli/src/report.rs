//! `cere report`: where a program's time goes, why, and what helps, as one page that needs no network; or a subset.

use crate::options::{self, Common};
use anyhow::{Context, Result};
use cere_guard::party::store_of;
use cere_predict::subset::Measurement;
use cere_report::Data;
use cere_report::serve::{Server, Site};
use cere_report::subset::{self, SubsetData};
use cere_report::{beside, summary};
use cere_system::console::{note, print, progress};
use std::path::{Path, PathBuf};

/// Write where the time goes, why, and what helps, as one HTML page
#[derive(clap::Args)]
#[command(after_help = "\
The page shows what the store holds: the last profile, the codelets of the current build, the records of their\n\
replays at the flags of the capture (`cere check` makes them), why regions take their time (`cere explain`), and the\n\
best known flags (`cere tune`). It opens without a network, and can be sent as it is; it holds source lines of the regions.\n\
\n\
With --serve nothing is written: the page is at an address of this machine alone, and renews itself while `cere study` or\n\
`cere try --watch` work on the store, until ctrl-C.\n\
\n\
With --compare the page shows both stores side by side, region by region. `cere compare` replays both in turns, and is sharper.\n\
\n\
With --subset: dendrogram, clusters, and with --machine predicted and measured programs; if a machine measured all codelets,\n\
errors by number of clusters beside those of random partitions.\n\
\n\
Examples:\n\
\x20 cere report -o report.html\n\
\x20 cere report --serve\n\
\x20 cere report --compare ../other-build -o both.html\n\
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
    /// Show the page at http://127.0.0.1:PORT (7878; 0: any that is free), as the store changes
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "7878", conflicts_with_all = ["output", "subset", "json"])]
    serve: Option<u16>,
    /// Another store, or a directory with one, to show beside this one
    #[arg(long, value_name = "STORE", conflicts_with = "subset")]
    compare: Option<PathBuf>,
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
    let max_error = options.max_error / 100.0;
    let other = match &options.compare {
        Some(path) => {
            let data = Data::read(&store_of(path)?, max_error)
                .with_context(|| format!("{} cannot be compared with", path.display()))?;
            Some((data, path.display().to_string()))
        }
        None => None,
    };
    let other = other.as_ref().map(|(data, name)| (data, name.as_str()));
    if let Some(port) = options.serve {
        let store = options.common.existing_store()?;
        let server = Server::open(port)?;
        print::out(&format!("http://{}\n", server.address()))?;
        note!("ctrl-C ends it");
        server.run(&Site {
            store: &store,
            max_error,
            other,
        })?;
        return Ok(0);
    }
    options::writable(&options.output)?;
    let data = Data::read(&store, max_error)?;
    let page = cere_report::html(&data, other)?;
    std::fs::write(&options.output, &page)
        .with_context(|| format!("cannot write {}", options.output.display()))?;
    let file = std::path::absolute(&options.output)?;
    if options.common.json {
        print::json(&serde_json::json!({"file": file, "bytes": page.len(),
            "regions": data.profile.regions.len(), "codelets": data.codelets.len(), "records": data.records.len(),
            "notes": data.notes, "top": summary::top_regions(&data),
            "compared": other.map(|(there, _)| beside::pairs(&data, there))}))?;
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
