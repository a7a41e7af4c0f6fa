//! `cere count CODELET...`: exact counts of what codelets execute, and the traffic that simulated caches make of it.

use crate::each::{Shown, each};
use crate::options::{Counting, geometry};
use crate::show;
use anyhow::{Context, Result};
use cere_count::Counts;
use cere_measure::{Replays, Settings};
use cere_store::find;
use std::path::Path;

/// Count what codelets execute: instructions, floating-point work, memory traffic
#[derive(clap::Args)]
#[command(after_help = "\
The codelet's machine code is made once more, with counters that report each piece of it when it runs; the timed code stays\n\
as it is. The counted run is replayed like any other, and has a verdict. No clock and no hardware counter is used, so that two\n\
machines give the same numbers for the same flags and geometry.\n\
\n\
Traffic is that of simulated caches, which start as the replay's do (--warmup). --geometry takes `here` (this machine's caches,\n\
from sysfs), the name of a machine, or a JSON file.\n\
\n\
--hardware replays the code without counters of CERE's as well and reads the processor's own, in user mode: the mean of --reps\n\
invocations (10, fewer if they take more than 2 s). It fails where no such counter works, as in most virtual machines.\n\
\n\
Exit status: 1 if a codelet could not be counted or ended in another state.\n\
\n\
Examples:\n\
\x20 cere count 'solve@*'\n\
\x20 cere count 'solve@*:50' --flags '-O3 -march=native' --json\n\
\x20 cere count 'solve@*' --geometry skylake --csv > counts.csv")]
pub struct Options {
    /// Codelets, regions or .codelet files
    #[arg(required = true, value_name = "CODELET")]
    what: Vec<String>,
    /// Caches to simulate: here, a name, a file, or none
    #[arg(long, value_name = "WHICH", default_value = "here")]
    geometry: String,
    /// Accesses that are simulated, at most: of codelets with more, a sample of the cache lines
    #[arg(long, value_name = "N", default_value_t = 4_000_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Read the processor's counters beside the exact counts
    #[arg(long)]
    hardware: bool,
    #[command(flatten)]
    counting: Counting,
}

/// Counts the codelet in `file`.
fn count(
    replays: &Replays,
    settings: &Settings,
    counting: &cere_count::Settings,
    hardware: bool,
    file: &Path,
) -> Result<Counts> {
    let (package, manifest, _) = replays.unpack(file)?;
    let options = replays.options(settings, None)?;
    let mut counts = cere_count::count(&package, counting, &options)?;
    counts.notes.extend(replays.notes(&manifest));
    if hardware {
        counts.hardware = Some(cere_count::hardware::count(&package, &options)?);
    }
    Ok(counts)
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if options.hardware {
        cere_count::hardware::check().context("--hardware")?;
    }
    let store = options.counting.common.store()?;
    let counting = cere_count::Settings {
        geometry: geometry(&options.geometry)?,
        seed: options.counting.seed,
        budget: options.budget,
        ..cere_count::Settings::default()
    };
    let settings = options.counting.replays.settings()?;
    let events = cere_system::console::events();
    let files = find::all(&store, &options.what, &events)?;
    let replays = Replays::open(&store, &events)?;
    let one = |file: &Path| count(&replays, &settings, &counting, options.hardware, file);
    let shown = Shown {
        words: ["counting", "not counted"],
        text: show::count::text,
        json: &show::count::json,
        csv: show::count::csv,
        is_different: Counts::is_different,
    };
    each(&files, options.counting.form(), &shown, one)
}
