//! `cere metrics CODELET...`: the metric vector of each codelet, for clustering.

use crate::each::{Shown, each};
use crate::options::{Counting, caches};
use crate::show;
use anyhow::{Context, Result};
use cere_count::metrics::Vector;
use cere_format::replay::Verdict;
use cere_measure::{Replays, Settings};
use cere_store::find;
use cere_system::console::print;
use std::path::Path;

/// Describe codelets by metrics that need no hardware counters
#[derive(clap::Args)]
#[command(after_help = "\
Instruction mix, vectors, parallelism, branches, reuse distances, strides, footprint, simulated caches, and what llvm-mca's\n\
model of Intel Ice Lake makes of the code: the same on every machine, for the same flags, geometry and budget. Only the\n\
metrics of the group `rate` need a time: that of a replay on this machine.\n\
\n\
--list says what each metric is.\n\
\n\
Exit status: 1 if a codelet could not be measured or ended in another state.\n\
\n\
Examples:\n\
\x20 cere metrics 'solve@*'\n\
\x20 cere metrics '*' --csv > metrics.csv\n\
\x20 cere metrics '*' --flags '-O3 -march=native' --no-time --json\n\
\x20 cere metrics --list")]
pub struct Options {
    /// Codelets, regions or .codelet files
    #[arg(required_unless_present = "list", value_name = "CODELET")]
    what: Vec<String>,
    /// Say what each metric is, and measure nothing
    #[arg(long, conflicts_with = "what")]
    list: bool,
    /// Caches to simulate: here, a name or a file
    #[arg(long, value_name = "WHICH", default_value = "sapphire-rapids")]
    geometry: String,
    /// Instructions and accesses whose order is looked at, at most: of codelets with more, a sample
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Replay nothing for its time; the metrics that need one have no value
    #[arg(long)]
    no_time: bool,
    /// Read the processor's counters as well, as `cere count --hardware` does
    #[arg(long, conflicts_with = "list")]
    hardware: bool,
    #[command(flatten)]
    counting: Counting,
}

/// Measures the codelet in `file`.
fn measure(
    replays: &Replays,
    settings: &Settings,
    measuring: &cere_count::metrics::Settings,
    file: &Path,
    options: &Options,
) -> Result<Vector> {
    let (package, manifest, _) = replays.unpack(file)?;
    let how = replays.options(settings, None)?;
    let mut vector = cere_count::metrics::vector::vector(&package, measuring, &how)?;
    vector.counts.notes.extend(replays.notes(&manifest));
    if options.hardware {
        vector.counts.hardware = Some(cere_count::hardware::count(&package, &how)?);
    }
    if !options.no_time {
        let replay = replays.replay(settings, file, None)?;
        vector.time(replay.seconds_median);
        // The time is that of another result then.
        if replay.verdict == Verdict::Different {
            (vector.counts.verdict, vector.counts.reason) = (replay.verdict, replay.reason);
        }
    }
    Ok(vector)
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if options.list {
        match (options.counting.common.json, options.counting.csv) {
            (true, _) => print::json(&*cere_count::metrics::METRICS)?,
            (_, true) => print::out(&show::metrics::list_csv())?,
            _ => print::text(&show::metrics::list())?,
        }
        return Ok(0);
    }
    if options.hardware {
        cere_count::hardware::check().context("--hardware")?;
    }
    let store = options.counting.common.store()?;
    let measuring = cere_count::metrics::Settings {
        geometry: caches(&options.geometry, "the metrics need")?,
        seed: options.counting.seed,
        budget: options.budget,
    };
    let settings = options.counting.replays.settings()?;
    let events = cere_system::console::events();
    let files = find::all(&store, &options.what, &events)?;
    let replays = Replays::open(&store, &events)?;
    let one = |file: &Path| measure(&replays, &settings, &measuring, file, options);
    let shown = Shown {
        words: ["measuring", "not measured"],
        text: show::metrics::text,
        json: &|v| show::metrics::json(v, options.budget),
        csv: show::metrics::csv,
        is_different: |v| v.counts.is_different(),
    };
    each(&files, options.counting.form(), &shown, one)
}
