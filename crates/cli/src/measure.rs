//! `cere measure SUBSET -o FILE`: replays the codelets of a subset on this machine or on others.

use crate::options::{self, Flags, Nodes, Timing};
use crate::show;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, anyhow, bail, codes};
use cere_format::untrusted::is_plain;
use cere_measure::Settings;
use cere_nodes::Place;
use cere_predict::subset::Model;
use cere_predict::subset::archive;
use cere_predict::subset::measure::{self, How, Request};
use cere_predict::subset::modelled::Processor;
use cere_replay::{Team, Tolerance};
use cere_system::console::{note, print, progress};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Replays in a chunk.
const CHUNK: usize = 16;

/// Times of a program; the fastest counts.
const RUNS: usize = 3;

/// Measure the codelets of a subset on another machine
#[derive(clap::Args)]
#[command(after_help = "\
Needs neither root nor the programs: the archive of `cere subset -o`, and clang 22 or executables that `cere subset\n\
--prebuilt` linked. All codelets of the archive are replayed in rounds. A codelet whose result is not the original's has no time.\n\
\n\
Work that is done lies in FILE.work until all is: an interrupted call goes on there. --on spreads the replays over other\n\
machines of one kind: ssh:HOST,HOST (cere has to be in PATH there), slurm (array jobs, the directory has to be shared), hq\n\
(HyperQueue).\n\
\n\
--model needs no such machine: code is made for that processor (for AArch64 with -mcpu=CPU), what runs is counted here (under\n\
qemu-aarch64), and llvm-mca says what each piece takes. It simulates no caches and no misses of branches: a stand-in that is\n\
called so wherever its times go.\n\
\n\
With --flags on the machine of the reference times, the code as built is replayed in turns with that of the flags.\n\
\n\
Examples:\n\
\x20 cere measure nas.cere -o zen5.json\n\
\x20 cere measure nas.cere -o zen5.json --on slurm --partition zen5\n\
\x20 cere measure nas.cere -o n1.json --model neoverse-n1 --baseline icelake-server@2.6e9\n\
\x20 cere measure nas.cere -o o1.json --flags -O1 --run 'cg=./cg.O1'")]
pub struct Options {
    /// Archive of `cere subset`
    subset: PathBuf,
    /// Write the times here
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write a summary as JSON to stdout
    #[arg(long)]
    json: bool,
    /// Compiler flags after those of the build
    #[arg(
        long,
        value_name = "FLAGS",
        default_value = "",
        allow_hyphen_values = true
    )]
    flags: Flags,
    /// Run the executables in the archive instead of compiling
    #[arg(long)]
    prebuilt: bool,
    /// Largest relative error of a double that is rounding, with other flags or libraries
    #[arg(long, value_name = "X", default_value_t = 1e-9, value_parser = options::tolerance)]
    tolerance: f64,
    /// Likewise, of a float
    #[arg(long, value_name = "X", default_value_t = 1e-5, value_parser = options::tolerance)]
    float_tolerance: f64,
    /// Rounds over all codelets
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Name of this measurement for people [default: the processor and the flags]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Also run a program here, by its name in the subset, to compare its prediction with: the fastest of 3 runs
    #[arg(long, value_name = "NAME=COMMAND")]
    run: Vec<String>,
    /// Model a processor that is not there by llvm-mca, which takes all data from the first cache: LLVM's name of it, e.g. neoverse-n1
    #[arg(long, value_name = "CPU", conflicts_with_all = ["prebuilt", "run", "rounds"])]
    model: Option<String>,
    /// Cycles a second of the modelled processor [default: that of Graviton machines; other processors have none]
    #[arg(long, value_name = "HZ", requires = "model", value_parser = hertz)]
    hertz: Option<f64>,
    /// Also model the reference machine, and predict by the ratio of both models: CPU, or CPU@HZ
    #[arg(long, value_name = "CPU@HZ", requires = "model")]
    baseline: Option<String>,
    #[command(flatten)]
    nodes: Nodes,
    #[command(flatten)]
    timing: Timing,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    options::writable(&options.output).context("--output")?;
    let plain = |label: &String| label.chars().all(is_plain);
    if let Some(label) = options.label.as_ref().filter(|label| !plain(label)) {
        bail!(E8002, "--label {label:?}: it holds control characters");
    }
    let (subset, _) = archive::read(&options.subset)?;
    let mut settings = options.timing.settings(Team::default())?;
    settings.repetitions = options.timing.in_rounds();
    settings.flags = options.flags.words.clone();
    let warmup = subset.choice.warmup;
    if settings.warmup.is_some() && settings.warmup != warmup {
        bail!(
            E6313,
            "the reference times of the subset were taken with another --warmup: leave it out"
        );
    }
    settings.warmup = warmup;
    if options.prebuilt && !settings.flags.is_empty() {
        bail!(
            E6312,
            "--prebuilt runs code that is linked already: leave out --flags, or --prebuilt"
        );
    }
    settings.tolerance = Tolerance {
        double: options.tolerance,
        single: options.float_tolerance,
    };
    if !settings.flags.is_empty() {
        cere_toolchain::flags::check(&settings.flags)
            .and_then(|()| cere_toolchain::flags::known(&settings.flags))
            .context("--flags")?;
    }
    let place = options.nodes.place()?;
    if place != Place::Local && !options.run.is_empty() {
        bail!(
            E8001,
            "--run runs programs on this machine: it goes with --on local"
        );
    }
    let names: Vec<&str> = subset.programs.iter().map(|p| p.name.as_str()).collect();
    let programs = options.programs(&names)?;
    let model = options.model(&settings)?;
    if let Some(target) = model.as_ref().map(|model| &model.processor) {
        let mut flags = target.flags();
        flags.append(&mut settings.flags);
        settings.flags = flags;
    }
    let how = How {
        model,
        ..How::of(&settings, options.prebuilt, &subset.machine.id)
    };
    let measurement = measure::measure(
        &Request {
            archive: &options.subset,
            subset,
            output: &options.output,
            how,
            // A model says the same each time.
            rounds: options
                .model
                .as_ref()
                .map_or(options.rounds as usize, |_| 1),
            per_chunk: options.nodes.chunk().unwrap_or(CHUNK),
            place: &place,
            label: options.label.clone(),
            programs,
            events: &cere_system::console::events(),
        },
        &options.nodes.worker(true)?,
    )?;
    match options.json {
        true => print::json(&show::subset::measured_json(&measurement))?,
        false => print::text(&show::subset::measured_text(&measurement))?,
    }
    let failed = measurement.codelets.iter().any(|m| m.rounds.is_empty());
    Ok(u8::from(failed))
}

/// A frequency in hertz.
fn hertz(text: &str) -> Result<f64, String> {
    let hertz = text.parse::<f64>().map_err(|e| e.to_string())?;
    match (1e6..=1e11).contains(&hertz) {
        true => Ok(hertz),
        false => Err("a frequency in hertz is needed, e.g. 2.5e9".to_owned()),
    }
}

impl Options {
    /// What is to be modelled; none: replays are timed.
    fn model(&self, settings: &Settings) -> Result<Option<Model>> {
        let Some(cpu) = &self.model else {
            return Ok(None);
        };
        let named = |cpu, hertz| Processor::named(cpu, hertz, &settings.sandbox);
        let processor = named(cpu, self.hertz).context("--model")?;
        let baseline = self.baseline.as_ref().map(|text| {
            let (cpu, frequency) = match text.split_once('@') {
                Some((cpu, frequency)) => (cpu, Some(hertz(frequency))),
                None => (text.as_str(), None),
            };
            let frequency = frequency
                .transpose()
                .map_err(|why| anyhow!(E8002, "{why}"))?;
            named(cpu, frequency)
        });
        let baseline = baseline.transpose().context("--baseline")?;
        Ok(Some(Model {
            processor,
            baseline,
        }))
    }

    /// Seconds of the programs that are run; `names`: those of the subset.
    fn programs(&self, names: &[&str]) -> Result<BTreeMap<String, f64>> {
        let mut commands = Vec::new();
        for word in &self.run {
            let (given, _) = word.split_once('=').or_coded(codes::E8004, || {
                format!("--run {word}: NAME=COMMAND is needed")
            })?;
            // A program's name may hold a `=`.
            let known = names.iter().copied();
            let of = |name| Some((name, word.strip_prefix(name)?.strip_prefix('=')?));
            let found = known
                .filter_map(of)
                .max_by_key(|(name, _): &(&str, &str)| name.len());
            let (name, command) = found.or_coded(codes::E8004, || {
                let names = names.join(", ");
                format!("--run {word}: the subset has no program {given}; it has {names}")
            })?;
            commands.push((name, command));
        }
        let bar = progress::bar("running", (RUNS * commands.len()) as u64);
        let mut found: BTreeMap<String, f64> = BTreeMap::new();
        for _ in 0..RUNS {
            for (name, command) in &commands {
                bar.set_message((*name).to_owned());
                let start = Instant::now();
                let status = Command::new("sh")
                    .args(["-c", command])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .status()
                    .context("cannot start sh")?;
                let seconds = start.elapsed().as_secs_f64();
                if !status.success() {
                    bail!(E6323, "--run {name}: `{command}` failed: {status}");
                }
                let least = found.entry((*name).to_owned()).or_insert(seconds);
                *least = least.min(seconds);
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        if !found.is_empty() {
            note!("{} programs were run", found.len());
        }
        Ok(found)
    }
}
