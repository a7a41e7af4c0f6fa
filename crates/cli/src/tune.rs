//! `cere tune [REGION...]`: searches compiler flags for each region, on its codelets.

use crate::options::{self, Common, Nodes, Timing};
use crate::show;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::machine::Machine;
use cere_format::replay::Repetitions;
use cere_measure::{Goal, Settings};
use cere_replay::{Team, Tolerance};
use cere_system::console::{note, print};
use cere_timing::energy::Counters;
use cere_tune::Method;
use cere_tune::tuning::budget::Budget;
use cere_tune::tuning::{self, space};

/// Evaluations in a chunk: the code as built is timed anew in each.
const CHUNK: usize = 10;

/// Search compiler flags for each region, on its codelets
#[derive(clap::Args)]
#[command(after_help = "\
Each variant of a region is compiled, and its codelets are replayed. Each codelet's time counts for its class of\n\
invocations, and the result must be the original's. A difference that is rounding, within the tolerances, is accepted. A\n\
variant with another result is reported and never chosen. Variants with the same machine code are measured once.\n\
\n\
Spaces: levels (-O0 to -Os), codegen (flags of the code generator and of single optimisations), passes (pipelines made\n\
from that of -O3), full (both), or a file: `cere tune --show-space codegen` prints one to start from.\n\
Searches: groups, which learns which groups of flags matter; random, its baseline. If `cere machine` measured the machine,\n\
a search first tries what follows from it: width of vectors, interleaving, unrolling (--from nothing: it does not).\n\
\n\
An interrupted search continues where it was. The best variants are measured again, in turns with the code as built,\n\
and one is chosen only if it is faster with a chance of error of 5 % at most. `cere hybrid` links what was found.\n\
\n\
With --goal energy or edp each replay is followed by repetitions of at least 0.1 s whose energy is measured (`cere replay\n\
--energy`); gains are of that. Winners are decided by the same rule.\n\
\n\
--on spreads the evaluations over machines: ssh:HOST,HOST (cere has to be in PATH there), slurm (array jobs; the store has\n\
to be on a shared disk), hq (HyperQueue), or local, one chunk after the other. --batch evaluations are proposed at a\n\
time, before their outcomes are known. Each chunk times the code as built on its own machine, and the best variants are\n\
measured again there too. What is proposed depends on the seed, --batch and the outcomes alone: with the same times,\n\
`--on local` finds the same as `--on slurm`, whatever the number of machines and --chunk. If a machine is lost, the same\n\
command goes on; chunks that are finished are not done again.\n\
\n\
Examples:\n\
\x20 cere tune\n\
\x20 cere tune 'solve@*' --space levels\n\
\x20 cere tune --budget 30m --search random --target 1.10\n\
\x20 cere tune --goal energy\n\
\x20 cere tune --budget 2000 --on slurm --partition zen5 --batch 200")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Regions: names, globs or unique prefixes [default: those with codelets that take more than 1 % of the run]
    regions: Vec<String>,
    /// Space of variants: a name or a file
    #[arg(long, value_name = "SPACE", default_value = "codegen")]
    space: String,
    /// Print a space and end
    #[arg(long, value_name = "SPACE")]
    show_space: Option<String>,
    /// Search method: groups or random
    #[arg(long, value_name = "METHOD", default_value = "groups")]
    search: Method,
    /// What variants are to take less of: time; energy, by the counters of whole packages (RAPL); edp, energy times time
    #[arg(long, value_name = "GOAL", default_value = "time")]
    goal: Goal,
    /// Evaluations (400) or time (90s, 30m, 2h) for all regions together [default: 100 evaluations a region]
    #[arg(long, value_name = "BUDGET", allow_hyphen_values = true)]
    budget: Option<Budget>,
    /// Stop at a region once it is this many times faster, or takes this many times less of another goal; the others get the rest of the budget
    #[arg(long, value_name = "X", value_parser = gain_wanted)]
    target: Option<f64>,
    /// Variants compiled at a time, ahead of those that are timed [default: number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What searches start from: the machine as `cere machine` measured it, or nothing [default: machine, if it was measured and
    /// --on is not given]
    #[arg(long, value_name = "WHAT")]
    from: Option<From>,
    /// Also try flags that change values, such as -ffast-math: results within the tolerances are accepted
    #[arg(long)]
    change_values: bool,
    /// Largest relative error of a double that is still accepted
    #[arg(long, value_name = "X", default_value_t = 1e-9, value_parser = options::tolerance)]
    tolerance: f64,
    /// Likewise, of a float
    #[arg(long, value_name = "X", default_value_t = 1e-5, value_parser = options::tolerance)]
    float_tolerance: f64,
    /// Numbers of threads to try for parallel regions, with the best flags
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Vec<u32>,
    /// Start again without the results of earlier searches
    #[arg(long)]
    again: bool,
    /// With --on: evaluations that are proposed at a time [default: 20 a region]
    #[arg(long, value_name = "N", requires = "on", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: Option<u32>,
    #[command(flatten)]
    nodes: Nodes,
    #[command(flatten)]
    timing: Timing,
}

/// What searches start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum From {
    /// Variants that follow from the measured machine
    Machine,
    /// What the method draws
    Nothing,
}

fn gain_wanted(text: &str) -> Result<f64> {
    let fits = |value| value > 1.0 && value < 1e6;
    options::number(text, fits, "a number above 1 is needed: 1.04 is 4 % faster")
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if let Some(name) = &options.show_space {
        print::out(&space::text(name)?)?;
        return Ok(0);
    }
    if options.goal != Goal::Time && !options.nodes.given() {
        // With `--on` it is the other machines that have to show it.
        Counters::find()?;
    }
    let store = options.common.existing_store()?;
    let (place, worker) = (options.nodes.place()?, options.nodes.worker(true)?);
    if options.nodes.chunk().is_some() && !options.nodes.given() {
        bail!(E6420, "--chunk goes with --on");
    }
    let spread = tuning::Spread {
        place: &place,
        worker: &worker,
        per_chunk: options.nodes.chunk().unwrap_or(CHUNK),
        batch: options.batch.map(|n| n as usize),
    };
    let machine = options.machine()?;
    let outcome = tuning::tune(&tuning::Request {
        store: &store,
        regions: &options.regions,
        space: &options.space,
        search: options.search,
        budget: options.budget,
        target: options.target,
        jobs: options.jobs.map(usize::from),
        seed: options.seed,
        machine: machine.as_ref(),
        goal: options.goal,
        change_values: options.change_values,
        threads: &options.threads,
        again: options.again,
        spread: options.nodes.given().then_some(spread),
        replays: options.settings()?,
        events: &cere_system::console::events(),
    })?;
    if options.common.json {
        print::json(&show::tune::json(&outcome, options.goal))?;
    } else {
        print::text(&show::tune::text(&outcome))?;
    }
    let gains = |f: &tuning::Found| f.winner.is_some() || f.threads.is_some();
    match outcome.found.iter().any(gains) {
        true if options.goal == Goal::Time => {
            note!("`cere hybrid -o app.tuned -- PROGRAM ARGUMENTS` links it");
        }
        true => note!(
            "`cere hybrid -o app.tuned -- PROGRAM ARGUMENTS` links it, and keeps what makes the program faster: it decides by time"
        ),
        false if options.goal == Goal::Time => {
            note!("nothing is surely faster than the code as built");
        }
        false => note!(
            "nothing surely takes less {} than the code as built",
            options.goal.name()
        ),
    }
    Ok(0)
}

impl Options {
    /// The measured machine to start from. Other machines may be unlike this one, so with `--on` it has to be asked for.
    fn machine(&self) -> Result<Option<Machine>> {
        match self.from {
            Some(From::Nothing) => Ok(None),
            Some(From::Machine) => {
                let kept = Machine::kept();
                let kept = kept.context(
                    "--from machine: this machine was not measured yet: run `cere machine`",
                );
                kept.map(Some)
            }
            None if self.nodes.given() => Ok(None),
            None => Ok(Machine::kept()),
        }
    }

    fn settings(&self) -> Result<Settings> {
        Ok(Settings {
            repetitions: match self.timing.repetitions() {
                given if given != Repetitions::default() => given,
                _ => tuning::REPETITIONS,
            },
            tolerance: Tolerance {
                double: self.tolerance,
                single: self.float_tolerance,
            },
            // A search compares variants: the fewer disturb it, the better.
            beside: self.timing.beside.or(Some(0)),
            energy: self.goal.rounds(),
            ..self.timing.settings(Team::default())?
        })
    }
}
