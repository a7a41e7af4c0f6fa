//! `cere predict --threads LIST`: the run's time with other numbers of threads, from its codelets (CERE thesis, 4.4, 5.4.1).

mod measure;
mod model;
mod plot;

use crate::check::current;
use crate::names;
use crate::options::Common;
use crate::replay::{Placement, Replays, Timing};
use crate::{print, progress, state};
use anyhow::{Context, Result, bail};
use model::{Prediction, Replayed};
use std::path::PathBuf;

/// Predict the run's time with other numbers of threads
#[derive(clap::Args)]
#[command(after_help = "\
The time is that of the sequential part, as profiled, and of each parallel region: the sum over its performance classes of the\n\
class's time in the profile times its codelet's replay over the invocation's time in the profile. Regions without codelets, or whose\n\
replays do not end as they should, count as profiled and are named.\n\
--measure runs the program with each number of threads as well, three times, in alternation.\n\
\n\
Examples:\n\
\x20 cere predict --threads 1,2,4,8\n\
\x20 cere predict --threads 1,2,4,8 --affinity compact --measure --plot threads.svg")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Numbers of threads
    #[arg(long, value_name = "N,...", required = true, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Vec<u32>,
    #[command(flatten)]
    place: Placement,
    #[command(flatten)]
    timing: Timing,
    /// Run the program with each number of threads as well
    #[arg(long)]
    measure: bool,
    /// Draw the times as a picture (SVG)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    let profile = state::current_profile(&store)?;
    let units = state::current_units(&store)?;
    let codelets = current(&store)?;
    let mut threads = options.threads.clone();
    threads.sort_unstable();
    threads.dedup();
    let known = names::named(&units);
    let plan = model::Plan::of(&profile, &known, &codelets)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    for &n in threads.iter().filter(|n| **n > cores) {
        eprintln!(
            "cere: {n} threads are more than the {cores} processors that this process may run on: they take turns"
        );
    }
    // The number at capture is what the others are compared with.
    let mut counts = threads.clone();
    counts.extend(plan.captured());
    counts.sort_unstable();
    counts.dedup();
    let replays = Replays::open(&store)?;
    let bar = progress::bar("replaying", (counts.len() * plan.codelets()) as u64);
    let mut replayed = Vec::new();
    for &n in &counts {
        let request = options.timing.request(options.place.team(Some(n))?)?;
        for codelet in plan.each() {
            bar.set_message(format!("{} with {n}", codelet.manifest.name));
            let outcome = replays.replay(&request, codelet.file, None);
            replayed.push(Replayed::of(codelet, n, outcome));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let mut prediction = Prediction::of(&plan, &threads, &replayed);
    if options.measure {
        measure::add(&mut prediction, &store, &profile, &plan, &options.place)?;
    }
    for note in prediction.warnings() {
        eprintln!("cere: {note}");
    }
    if let Some(file) = &options.plot {
        std::fs::write(file, plot::svg(&prediction))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    if options.common.json {
        print::json(&prediction)?;
    } else {
        print::out(&prediction.text())?;
    }
    if prediction.nothing() {
        bail!("no parallel region has a codelet that can be used: see the reasons above");
    }
    Ok(0)
}
