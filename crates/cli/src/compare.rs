//! `cere compare A B`: two builds, states of the sources, sets of flags or machines, by region.

use crate::options::{Common, Timing, geometry};
use crate::show;
use anyhow::{Context, Result};
use cere_format::store::Store;
use cere_guard::compare::{Compared, Comparison, pairs};
use cere_guard::party::{Given, Party, store_in};
use cere_guard::records::{self, Record};
use cere_measure::{Effort, Replays};
use cere_replay::Team;
use cere_report::compared::{Ratio, ratios};
use cere_system::console::{note, print, progress};
use std::path::PathBuf;

/// Compare two builds, commits, sets of flags or machines, region by region
#[derive(clap::Args)]
#[command(after_help = "\
A side is `captured` (the code as captured), `sources` (as they are), `flags:FLAGS` (the captured code under flags after those of\n\
the build), `dir:TREE` (a copy of the source tree), `git:COMMIT`, a directory with another store, or a file that\n\
`cere results --json` wrote, maybe on another machine. Both sides run in turns on captured memory. Of two stores each side has its\n\
own, and regions are matched by name, or else by function and place.\n\
\n\
Exit status: 1 if the result of a side is wrong, or a side cannot be run.\n\
\n\
Examples:\n\
\x20 cere compare captured 'flags:-O3 -march=native'\n\
\x20 cere compare git:v1.2 sources 'solve@*'\n\
\x20 cere compare .cere ../other-build --plot ratios.svg\n\
\x20 cere compare here.json there.json --json")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// The first side
    #[arg(value_name = "A")]
    first: String,
    /// The second side
    #[arg(value_name = "B")]
    second: String,
    /// Regions or codelets of the first side; all if none is given
    what: Vec<String>,
    /// Compare results and counts alone
    #[arg(long)]
    no_times: bool,
    /// Write the ratios as a picture (SVG)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Caches to simulate: here, a name, a file, or none
    #[arg(long, value_name = "WHICH", default_value = "here")]
    geometry: String,
    /// Seconds of replays for each region, after which no round of them begins
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = crate::options::seconds)]
    seconds: f64,
    #[command(flatten)]
    timing: Timing,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if let Some(file) = &options.plot {
        crate::options::writable(file)?;
    }
    let texts = [&options.first, &options.second];
    let mut given = Vec::new();
    for text in texts {
        given.push(text.parse::<Given>().map_err(anyhow::Error::msg)?);
    }
    let of_records = given.iter().any(|g| matches!(g, Given::Records(_)));
    let all = match of_records {
        true => {
            let sides = [
                records_of(&given[0], options)?,
                records_of(&given[1], options)?,
            ];
            records::compare([&sides[0], &sides[1]], &options.what)?
        }
        false => replayed(options, [&given[0], &given[1]])?,
    };
    match options.common.json {
        true => print::json(&show::compare::json(&all))?,
        false => print::text(&show::compare::text(&all))?,
    }
    if let Some(file) = &options.plot {
        let title = format!("time of {} over that of {}", options.second, options.first);
        match ratios(&rows(&all), &title) {
            Some(svg) => std::fs::write(file, svg)
                .with_context(|| format!("cannot write {}", file.display()))?,
            None => note!(
                "there is no ratio of times to draw: {} is not written",
                file.display()
            ),
        }
    }
    Ok(u8::from(!all.iter().all(Compared::is_right)))
}

fn rows(all: &[Compared]) -> Vec<Ratio> {
    let row = |c: &Compared| {
        let gain = c.gain?;
        Some(Ratio {
            name: c.name.clone(),
            ratio: gain.ratio,
            interval: (gain.low, gain.high),
        })
    };
    all.iter().filter_map(row).collect()
}

/// The records of a side.
fn records_of(given: &Given, options: &Options) -> Result<Vec<Record>> {
    match given {
        Given::Records(path) => records::read(path),
        Given::Store(path) => records::of_store(&store_in(path)?),
        Given::Captured => records::of_store(&options.common.existing_store()?),
        _ => cere_catalogue::bail!(
            E6119,
            "records are compared with records: name a file of `cere results --json`, a directory with a store, or captured"
        ),
    }
}

/// Compares by replays on this machine.
fn replayed(options: &Options, given: [&Given; 2]) -> Result<Vec<Compared>> {
    let both_stores = given.iter().all(|g| matches!(g, Given::Store(_)));
    let store = match both_stores {
        true => Store::new(std::path::absolute(&options.common.store)?),
        false => options.common.existing_store()?,
    };
    let texts = [&options.first, &options.second];
    let first = Party::open(given[0], texts[0], &store)?;
    let second = Party::open(given[1], texts[1], &store)?;
    let events = cere_system::console::events();
    let replays = [
        Replays::open(&first.store, &events)?,
        Replays::open(&second.store, &events)?,
    ];
    let (parties, replays) = ([&first, &second], [&replays[0], &replays[1]]);
    let (pairs, alone) = pairs(parties, replays, &options.what)?;
    for name in alone {
        note!("left out {name}: {} has no codelet of it", second.name);
    }
    let mut settings = options.timing.settings(Team::default())?;
    if settings.repetitions == Default::default() {
        settings.repetitions.least = 3;
        settings.repetitions.seconds = 0.05;
    }
    let effort = Effort {
        seconds: options.seconds,
        most: 40,
        ..Effort::default()
    };
    let comparison = Comparison {
        parties,
        replays,
        settings,
        geometry: geometry(&options.geometry)?,
        effort: (!options.no_times).then_some(effort),
    };
    let mut all = Vec::new();
    for pair in &pairs {
        let spinner = progress::spinner(format!("comparing {}", pair.name()));
        let compared = comparison.compare(pair);
        spinner.finish_and_clear();
        all.push(compared.with_context(|| format!("{} cannot be compared", pair.name()))?);
    }
    Ok(all)
}
