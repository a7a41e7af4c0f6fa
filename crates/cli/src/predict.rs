//! `cere predict`: the run's time with other numbers of threads, under other flags, or on other machines.

use crate::options::{self, Common, Placement, Timing};
use crate::show;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::profile::RegionKey;
use cere_measure::decide::rounds;
use cere_predict::subset::model::Predicted;
use cere_predict::subset::{Measurement, archive};
use cere_predict::{energy, flags, machines, model, ranks, rounds::Rounds};
use cere_replay::Team;
use cere_report::threads;
use cere_store::current::{self, codelets};
use cere_store::{names, state};
use cere_system::console;
use cere_system::console::print::{self, tell};
use std::path::{Path, PathBuf};

/// Predict the run's time with other numbers of threads, under other flags, or on other machines
#[derive(clap::Args)]
#[command(after_help = "\
The predicted time is the sequential part, measured with as many threads as at capture, plus all parallel regions. A\n\
region is the sum over its classes: the class's time in those runs, times its codelet's replay over one invocation's time\n\
there. Regions without codelets, or whose replays fail, count as profiled and are named. With one thread the result has\n\
to be the original's. --measure also runs the program with each number of threads. Replays and runs alternate in rounds,\n\
and both use fast times (see `cere check --help`). `95 % of it` is the interval of the error.\n\
\n\
Of a program in several ranks it is the work of the slowest rank, each rank by its own profile, plus that rank's time in\n\
MPI, as measured with as many threads as at capture.\n\
\n\
With --flags-file, for each set of flags: each region that matters counts with its share of the run, times its codelets'\n\
replays under the flags over those as built, class by class. Of ranks the slowest counts, as above. --measure also\n\
builds and runs the program. Every time is compared with the runs of the plain build before and after it.\n\
\n\
With --machine, for each program of the subset that `cere measure` measured: each region counts with its time on the\n\
reference, times the ratio of its cluster's representative, or its own if it was measured as a check. The rest of the\n\
program gets the ratio of what is covered. A cluster whose check disagrees is refused and counts as not covered.\n\
\n\
With --energy: of each region the invocations times the joules of the codelets that stand for them, as replays at the\n\
build's flags measured these on this machine. Nothing is replayed or run; what no codelet stands for is not predicted.\n\
\n\
Intervals (95 %) are of the noise of rounds for threads and flags; for machines, of the spread within clusters as well.\n\
\n\
Examples:\n\
\x20 cere predict --threads 1,2,4,8\n\
\x20 cere predict --threads 1,2,4,8 --affinity compact --measure --plot threads.svg\n\
\x20 cere predict --flags-file flags.txt --measure\n\
\x20 cere predict --energy\n\
\x20 cere predict --machine zen5.json\n\
\x20 cere predict --machine zen3.json zen5.json --rank")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Numbers of threads
    #[arg(long, value_name = "N,...", required_unless_present_any = ["flags_file", "machine", "energy"], value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Vec<u32>,
    /// Sets of flags for the whole program, one a line, optionally with a pipeline in brackets after it; instead of --threads
    #[arg(long, value_name = "FILE", conflicts_with_all = ["threads", "no_run", "plot", "affinity", "places", "bind", "schedule", "runtime"])]
    flags_file: Option<PathBuf>,
    /// With --flags-file and --measure: lines of the output that contain TEXT are not compared; may be given several times
    #[arg(long, value_name = "TEXT", requires = "flags_file")]
    ignore: Vec<String>,
    /// Files of `cere measure`: predict the subset's programs on these machines; instead of --threads
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["threads", "flags_file", "no_run", "plot", "affinity", "places", "bind", "schedule", "runtime", "measure", "rounds"])]
    machine: Vec<PathBuf>,
    /// With --machine: the archive of another choice among the measured codelets
    #[arg(long, value_name = "FILE", requires = "machine")]
    subset: Option<PathBuf>,
    /// With --machine: which machine is the fastest for each program
    #[arg(long, requires = "machine")]
    rank: bool,
    /// With --machine: refuse a cluster whose check differs from its representative by more than this, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "25", requires = "machine", value_parser = options::percent)]
    disagree: f64,
    /// The energy of the run as built, by records of `cere replay --energy`; instead of --threads
    #[arg(long, conflicts_with_all = ["threads", "flags_file", "machine", "no_run", "plot", "affinity", "places", "bind", "schedule", "runtime", "measure", "rounds"])]
    energy: bool,
    #[command(flatten)]
    place: Placement,
    #[command(flatten)]
    timing: Timing,
    /// Also run the program: with each number of threads, or built with each set of flags
    #[arg(long)]
    measure: bool,
    /// Do not run the program: take its sequential part from the profile, where probes of serial loops add to it
    #[arg(long, conflicts_with = "measure")]
    no_run: bool,
    /// Rounds: in each, every codelet is replayed with each number of threads, and the program runs
    /// [default: 9; 5 for programs of 2 s or more, 3 of 5 s, 1 of a minute]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Draw the times as a picture (SVG)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if let Some(file) = &options.flags_file {
        return under_flags(options, file);
    }
    if options.energy {
        return of_energy(options);
    }
    if !options.machine.is_empty() {
        return on_machines(options);
    }
    let store = options.common.store()?;
    let profile = current::profile(&store)?;
    let units = state::current_units(&store)?;
    let chosen = codelets(&store, &profile)?;
    let mut threads = options.threads.clone();
    threads.sort_unstable();
    threads.dedup();
    let known = names::named(&units);
    let plan = model::Plan::of(&profile, &known, &chosen.codelets)?;
    // The program runs in the directory of its profile.
    let plot = options.plot.as_ref().map(std::path::absolute).transpose()?;
    let mut notes = chosen.notes.clone();
    notes.extend(team_warnings(&threads, &plan));
    let keys = plan.keys();
    let elsewhere = |key: &RegionKey| model::is_parallel(&known, key) && !keys.contains(key);
    notes.extend(ranks::notes(&profile, "parallel regions", elsewhere));
    notes.extend(show::profile::share_of_others(&profile).map(|share| {
        format!(
            "{share} of the processor time is in threads that are neither the first nor of a team: how they share the processors is not predicted"
        )
    }));
    tell(&notes);
    let rounds = Rounds {
        store: &store,
        profile: &profile,
        plan,
        threads: &threads,
        settings: options.timing.settings(options.place.team(None)?)?,
        rounds: options.rounds.unwrap_or_else(|| rounds(profile.seconds)),
        measure: options.measure,
        sequential: !options.no_run,
        events: &console::events(),
    };
    let mut prediction = rounds.predict()?;
    let warnings = prediction.warnings();
    tell(&warnings);
    notes.extend(warnings);
    prediction.notes = notes;
    if let Some(file) = &plot {
        std::fs::write(file, threads::svg(&prediction))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    if options.common.json {
        print::json(&prediction)?;
    } else {
        print::text(&prediction.text())?;
    }
    if prediction.nothing() {
        bail!(
            E6022,
            "no parallel region has a codelet that can be used: see the reasons above"
        );
    }
    Ok(0)
}

/// With `--flags-file`.
fn under_flags(options: &Options, file: &Path) -> Result<u8> {
    let events = console::events();
    let sets = flags::read(file, &events)?;
    let store = options.common.store()?;
    let request = flags::Request {
        store: &store,
        replays: options.timing.settings(Team::default())?,
        rounds: options.rounds,
        measure: options.measure,
        ignore: &options.ignore,
        events: &events,
    };
    let found = flags::predict(&request, &sets)?;
    if options.common.json {
        print::json(&found)?;
    } else {
        print::text(&flags::text(&found))?;
    }
    tell(&found.notes);
    Ok(0)
}

/// With `--energy`.
fn of_energy(options: &Options) -> Result<u8> {
    let store = options.common.existing_store()?;
    let settings = options.timing.settings(Team::default())?;
    let found = energy::predict(&store, &settings, &console::events())?;
    match options.common.json {
        true => print::json(&found)?,
        false => print::text(&found.text())?,
    }
    tell(&found.notes);
    Ok(0)
}

/// With `--machine`.
fn on_machines(options: &Options) -> Result<u8> {
    let subset = options.subset.as_deref().map(archive::read).transpose()?;
    let subset = subset.as_ref().map(|found| &found.0);
    let disagree = 1.0 + options.disagree / 100.0;
    let mut all = Vec::new();
    for file in &options.machine {
        let measurement = Measurement::read(file)?;
        let found = machines::predict(&measurement, subset, disagree);
        all.push(found.with_context(|| format!("{} cannot be used", file.display()))?);
    }
    if options.rank {
        let ranked = machines::rank(&all)?;
        match options.common.json {
            true => print::json(&ranked)?,
            false => print::text(&machines::rank_text(&ranked))?,
        }
        return Ok(0);
    }
    match (options.common.json, &all[..]) {
        (true, [one]) => print::json(one)?,
        (true, all) => print::json(&all)?,
        (false, all) => {
            let texts: Vec<String> = all.iter().map(machines::text).collect();
            print::text(&texts.join("\n"))?;
        }
    }
    let predicted = |p: &Predicted| p.outcome.predicted_seconds.is_some();
    Ok(u8::from(
        !all.iter().all(|of| of.programs.iter().all(predicted)),
    ))
}

/// Warnings: more threads than processors, or more than the codelets were captured with.
fn team_warnings(threads: &[u32], plan: &model::Plan) -> Vec<String> {
    let mut notes = Vec::new();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let ranks = plan.ranks.len().max(1) as u32;
    for &n in threads.iter().filter(|n| **n * ranks > cores) {
        notes.push(match ranks {
            1 => format!(
                "{n} threads are more than the {cores} processors that this process may run on: they take turns"
            ),
            _ => format!(
                "{ranks} ranks x {n} threads are more than the {cores} processors that this process may run on: if all ranks run here \
                 they take turns, and the replays, of one rank alone, do not stand for that"
            ),
        });
    }
    let captured = plan.captured().into_iter().max().unwrap_or(1);
    let beyond: Vec<String> = threads
        .iter()
        .filter(|n| **n > captured)
        .map(u32::to_string)
        .collect();
    if numa_nodes() > 1 && !beyond.is_empty() {
        notes.push(format!(
            "captured with {captured} threads, so where more ({}) would have their memory on this machine's {} nodes is not \
             known: capture with as many for that",
            beyond.join(", "),
            numa_nodes()
        ));
    }
    notes
}

/// Number of NUMA nodes of this machine.
fn numa_nodes() -> usize {
    let entries = std::fs::read_dir("/sys/devices/system/node");
    let names = entries.into_iter().flatten().flatten();
    let node = |name: &str| {
        name.strip_prefix("node")
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let nodes = names.filter(|e| e.file_name().to_str().is_some_and(node));
    nodes.count().max(1)
}
