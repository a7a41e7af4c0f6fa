//! `cere roofline CODELET...`: codelets, and series of them, on the machine's roof.

use crate::options::{self, Common, Placement};
use crate::{count, show};
use anyhow::{Context, Result, bail};
use cere_console::{note, print, progress};
use cere_format::machine::{Identity, MACHINE_VERSION, Machine};
use cere_format::replay::Repetitions;
use cere_format::store::Store;
use cere_measure::{Replays, Settings};
use cere_roofline::document::{Apart, Document, Subject};
use cere_roofline::measure::{Meter, refusal};
use cere_roofline::{State, document, roofs};
use cere_store::{codelets, find};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Put codelets on the roof of this machine
#[derive(clap::Args)]
#[command(after_help = "\
Work (floating-point operations) and traffic (bytes from each cache and from memory) are counted as by `cere count`; the time\n\
is that of replays in four states: code and data, each cold or warm. Roofs are those that `cere machine` measured. The roof\n\
that binds is the lowest at the point's intensities: the bandwidth of each level, and the highest peak.\n\
\n\
Codelets of one region under the same flags are a series, in the order of their invocations. What was measured is kept in\n\
the store's cache; --fresh measures again.\n\
\n\
Exit status: 1 if a codelet could not be measured or ended in another state. Code without floating point is listed apart.\n\
\n\
Examples:\n\
\x20 cere roofline 'solve@*' --svg roof.svg\n\
\x20 cere roofline 'solve@*:50' --flags '' --flags '-O3 -march=native' --state data=warm,code=warm\n\
\x20 cere roofline 'step@*' --threads 1 --threads 2 --machine node7.json --json")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Codelets, regions or .codelet files
    #[arg(required = true, value_name = "CODELET")]
    what: Vec<String>,
    /// Compiler flags after those of the build; again for another series
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    flags: Vec<String>,
    /// Threads of OpenMP regions; again for another series [default: as captured]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Vec<u32>,
    /// Where data and code lie at first: data=cold,code=warm; again for another one [default: all four]
    #[arg(long, value_name = "STATE", value_parser = State::parse)]
    state: Vec<State>,
    /// Measurement of a machine, by `cere machine` [default: that of this machine in the user's cache]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Caches to simulate: here, a name or a file
    #[arg(long, value_name = "WHICH", default_value = "here")]
    geometry: String,
    /// Accesses that are simulated, at most: of codelets with more, a sample of the cache lines
    #[arg(long, value_name = "N", default_value_t = 4_000_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Timed repetitions in each state
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reps: u32,
    /// Measure again what is kept
    #[arg(long)]
    fresh: bool,
    /// Longest run of a replay in seconds
    #[arg(long, value_name = "S", value_parser = options::seconds, default_value = "600")]
    timeout: f64,
    /// Run codelets and the compilers without the sandbox: for packages that you trust
    #[arg(long)]
    no_sandbox: bool,
    #[command(flatten)]
    place: Placement,
}

/// The machine of the roofs, and whether it is this one.
fn machine(file: Option<&Path>) -> Result<(Machine, bool)> {
    let Some(file) = file else {
        let kept = Machine::kept().context(
            "this machine was not measured, so that its roofs are not known: run `cere machine`, or name a measurement with \
             --machine",
        )?;
        return Ok((kept, true));
    };
    let wrong = || format!("--machine {}", file.display());
    let text = std::fs::read(file).with_context(wrong)?;
    let machine: Machine = serde_json::from_slice(&text)
        .context("it is no measurement of `cere machine`")
        .with_context(wrong)?;
    if machine.version != MACHINE_VERSION {
        bail!(
            "{}: it has version {}, and this cere reads {MACHINE_VERSION}: measure again with `cere machine`",
            wrong(),
            machine.version
        );
    }
    let here = machine.identity == Identity::here();
    Ok((machine, here))
}

/// What is measured of one codelet: its place, name, region, and the size that it was called with.
struct Found {
    file: PathBuf,
    name: String,
    region: String,
    size: Option<u64>,
}

impl Options {
    fn settings(&self, flags: &str, threads: Option<u32>) -> Result<Settings> {
        Ok(Settings {
            flags: shell_words::split(flags).context("--flags")?,
            passes: None,
            repetitions: Repetitions::exactly(self.reps),
            warmup: None,
            operands: Vec::new(),
            compare: true,
            tolerance: Default::default(),
            timeout: Duration::from_secs_f64(self.timeout),
            team: self.place.team(threads)?,
            sandbox: options::sandbox(self.no_sandbox),
        })
    }

    fn counting(&self) -> Result<cere_count::Settings> {
        let geometry = count::geometry(&self.geometry)?;
        if geometry.is_none() {
            bail!("--geometry none: traffic needs caches; take here, a name or a file");
        }
        Ok(cere_count::Settings {
            geometry,
            budget: self.budget,
            ..cere_count::Settings::default()
        })
    }

    /// Variants of each codelet: flags and threads.
    fn variants(&self) -> Vec<(String, Option<u32>)> {
        let flags = match self.flags.is_empty() {
            true => vec![String::new()],
            false => self.flags.clone(),
        };
        let threads: Vec<Option<u32>> = match self.threads.is_empty() {
            true => vec![None],
            false => self.threads.iter().copied().map(Some).collect(),
        };
        let of_flags = |f: String| {
            threads
                .iter()
                .map(move |t| (f.clone(), *t))
                .collect::<Vec<_>>()
        };
        flags.into_iter().flat_map(of_flags).collect()
    }

    fn states(&self) -> Vec<State> {
        match self.state.is_empty() {
            true => State::ALL.to_vec(),
            false => self.state.clone(),
        }
    }
}

/// Measures `found` in all states and adds it to `document`.
fn add(
    document: &mut Document,
    options: &Options,
    meter: &Meter,
    machine: &Machine,
    found: &Found,
    variant: &(String, Option<u32>),
) -> Result<()> {
    let (flags, threads) = variant;
    let settings = options.settings(flags, *threads)?;
    let apart = |state: Option<State>, reason: String, failed| Apart {
        codelet: found.name.clone(),
        flags: flags.clone(),
        state: state.map(State::name),
        reason,
        failed,
    };
    let work = match meter.work(&settings, &found.file) {
        Ok(work) => work,
        Err(error) => {
            document.apart.push(apart(None, print::error(&error), true));
            return Ok(());
        }
    };
    let refused = refusal(work.verdict, &work.reason).map(|why| (why, true));
    let none =
        || (work.flops == 0).then(|| ("it has no floating-point operations".to_owned(), false));
    if let Some((why, failed)) = refused.or_else(none) {
        document.apart.push(apart(None, why, failed));
        return Ok(());
    }
    for state in options.states() {
        let times = match meter.times(&settings, state, &found.file) {
            Ok(times) => times,
            Err(error) => {
                document
                    .apart
                    .push(apart(Some(state), print::error(&error), true));
                continue;
            }
        };
        if let Some(why) = refusal(times.verdict, &times.reason) {
            document.apart.push(apart(Some(state), why, true));
            continue;
        }
        let subject = Subject {
            codelet: &found.name,
            region: &found.region,
            size: found.size,
            flags,
            state,
        };
        let point = document::point(&subject, &work, &times, machine, &mut document.roofs)?;
        document.points.push(point);
    }
    Ok(())
}

/// The codelets that `what` names, by region and invocation.
fn found(store: &Store, replays: &Replays, what: &[String]) -> Result<Vec<Found>> {
    let mut all = Vec::new();
    for file in find::all(store, what)? {
        let (_, manifest, _) = replays.unpack(&file)?;
        all.push((
            manifest.invocation,
            Found {
                name: manifest.name,
                region: manifest.region_name,
                size: None,
                file,
            },
        ));
    }
    all.sort_by(|a, b| (&a.1.region, a.0).cmp(&(&b.1.region, b.0)));
    Ok(all.into_iter().map(|(_, found)| found).collect())
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let (machine, here) = machine(options.machine.as_deref())?;
    if roofs::of(&machine, "f64", 1).is_empty() {
        bail!(
            "the measurement of {} has neither peaks nor bandwidths: run `cere machine` again",
            machine.identity.cpu
        );
    }
    let store = options.common.store()?;
    let counting = options.counting()?;
    let replays = Replays::open(&store)?;
    let all = found(&store, &replays, &options.what)?;
    let meter = Meter::new(&replays, counting, options.fresh)?;
    let geometry = meter
        .counting
        .geometry
        .as_ref()
        .map_or(String::new(), |g| g.name.clone());
    let mut document = Document::new(&machine, here, geometry);
    for variant in options.variants() {
        for one in &all {
            let spinner =
                progress::spinner(format!("measuring {}", codelets::display_name(&one.file)));
            let done = add(&mut document, options, &meter, &machine, one, &variant);
            spinner.finish_and_clear();
            done?;
        }
    }
    document.join();
    match options.common.json {
        true => print::json(&document)?,
        false => print::out(&show::roofline::text(&document))?,
    }
    for apart in document.apart.iter().filter(|a| a.failed) {
        note!("not measured: {}: {}", apart.codelet, apart.reason);
    }
    Ok(u8::from(document.failed()))
}
