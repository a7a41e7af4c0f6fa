//! `cere roofline CODELET...`: codelets, and series of them, on the machine's roof.

use crate::options::{self, Common, Flags, Placement, caches};
use crate::show;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes};
use cere_format::machine::{Identity, MACHINE_VERSION, Machine};
use cere_format::replay::{Repetitions, Warmup};
use cere_format::store::Store;
use cere_machine::roofs;
use cere_measure::{Replays, Settings};
use cere_report::roofline::document::{Apart, Document, Subject};
use cere_report::roofline::kernel::{self, Kernel};
use cere_report::roofline::measure::{Meter, refusal};
use cere_report::roofline::{State, document, plot};
use cere_store::find;
use cere_system::console::{note, print, progress};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Put codelets on the roof of this machine
#[derive(clap::Args)]
#[command(after_help = "\
Work (floating-point operations) and traffic (bytes from each cache and from memory) are counted as by `cere count`; the time\n\
is that of replays in four states: code and data, each cold or warm. Roofs are those that `cere machine` measured. The roof\n\
that binds is the lowest at the point's intensities: the bandwidth of each level, and the highest peak.\n\
\n\
Codelets of one region under the same flags are a series, by rising work. What was measured is kept in\n\
the store's cache; --fresh measures again.\n\
\n\
--kernel: the file defines `size_t cere_bytes(long n)`, the bytes that it works on; `void cere_init(long n, void *memory)`,\n\
which fills them; and `void cere_kernel(long n, void *memory)`, which is measured. Each size becomes a codelet.\n\
\n\
Exit status: 1 if a codelet could not be measured or ended in another state. Code without floating point is listed apart.\n\
\n\
Examples:\n\
\x20 cere roofline 'solve@*' --svg roof.svg\n\
\x20 cere roofline 'solve@*:50' --flags '' --flags '-O3 -march=native' --state data=warm,code=warm\n\
\x20 cere roofline 'step@*' --threads 1 --threads 2 --machine node7.json --json\n\
\x20 cere roofline --kernel daxpy.c --sizes 1000:1000000:10 --svg daxpy.svg")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Codelets, regions or .codelet files
    #[arg(required_unless_present = "kernel", value_name = "CODELET")]
    what: Vec<String>,
    /// Measure a kernel of your own instead: a file of C, see below
    #[arg(long, value_name = "FILE", conflicts_with = "what", requires = "sizes")]
    kernel: Option<PathBuf>,
    /// With --kernel: sizes that it is called with, as 64:4096:2 (from, to, factor), 50:200:+50 or 1000
    #[arg(long, value_name = "RANGE", requires = "kernel")]
    sizes: Option<String>,
    /// With --kernel: flags of its compiler; --flags are added to them
    #[arg(
        long,
        value_name = "FLAGS",
        requires = "kernel",
        default_value = "-O2",
        allow_hyphen_values = true
    )]
    build_flags: Flags,
    /// Compiler flags after those of the build; again for another series
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    flags: Vec<Flags>,
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
    /// Write the plot to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// With --svg: the level of whose traffic the intensity is: L1, L2, L3 or memory
    #[arg(long, value_name = "LEVEL", default_value = roofs::MEMORY, requires = "svg")]
    level: String,
    /// Accesses that are simulated, at most: of codelets with more, a sample of the cache lines
    #[arg(long, value_name = "N", default_value_t = 4_000_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Timed repetitions in each state
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reps: u32,
    /// Measure again what is kept
    #[arg(long)]
    fresh: bool,
    /// Longest run of a replay in seconds [default: by its time in vivo, 10 or more; 600 where it is counted]
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// Run codelets and the compilers without the sandbox: for packages that you trust
    #[arg(long)]
    no_sandbox: bool,
    #[command(flatten)]
    place: Placement,
}

/// The machine of the roofs, and whether it is this one.
fn machine(file: Option<&Path>) -> Result<(Machine, bool)> {
    let Some(file) = file else {
        let kept = Machine::kept().or_coded(codes::E6219, ||
            "this machine was not measured, so that its roofs are not known: run `cere machine`, or name a measurement with \
             --machine",
        )?;
        return Ok((kept, true));
    };
    let wrong = || format!("--machine {}", file.display());
    let text = std::fs::read(file).with_context(wrong)?;
    let machine: Machine = serde_json::from_slice(&text)
        .or_coded(codes::E6220, || "it is no measurement of `cere machine`")
        .with_context(wrong)?;
    if machine.version != MACHINE_VERSION {
        bail!(
            E6220,
            "{}: it has version {}, and this cere reads {MACHINE_VERSION}: measure again with `cere machine`",
            wrong(),
            machine.version
        );
    }
    let here = machine.identity == Identity::here();
    Ok((machine, here))
}

/// `all` in their order, without repetitions.
fn once_each<T: Clone + PartialEq>(all: &[T]) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for one in all {
        if !found.contains(one) {
            found.push(one.clone());
        }
    }
    found
}

/// What is measured of one codelet: its place, name, region, and the size that it was called with.
struct Found {
    file: PathBuf,
    name: String,
    region: String,
    size: Option<u64>,
    notes: Vec<String>,
}

impl Options {
    fn settings(&self, flags: &Flags, threads: Option<u32>) -> Result<Settings> {
        Ok(Settings {
            flags: flags.words.clone(),
            passes: None,
            repetitions: Repetitions::exactly(self.reps),
            warmup: Some(Warmup::WorkingSet),
            operands: Vec::new(),
            compare: true,
            tolerance: Default::default(),
            timeout: self.timeout.map(Duration::from_secs_f64),
            team: self.place.team(threads)?,
            energy: None,
            cross: None,
            beside: Some(0),
            sandbox: options::sandbox(self.no_sandbox),
        })
    }

    fn counting(&self) -> Result<cere_count::Settings> {
        Ok(cere_count::Settings {
            geometry: Some(caches(&self.geometry, "traffic needs")?),
            budget: self.budget,
            ..cere_count::Settings::default()
        })
    }

    /// Name of the simulated caches, which have to have the level of the plot.
    fn shown(&self, meter: &Meter) -> Result<String> {
        let geometry = meter.counting.geometry.as_ref();
        let levels = geometry.map_or(0, |g| g.levels.len());
        let mut levels: Vec<String> = (1..).map(roofs::level_name).take(levels).collect();
        levels.push(roofs::MEMORY.to_owned());
        if !levels.contains(&self.level) {
            bail!(
                E8004,
                "--level {}: there are {}",
                self.level,
                levels.join(", ")
            );
        }
        Ok(geometry.map_or(String::new(), |g| g.name.clone()))
    }

    fn kernel(&self) -> Result<Option<Kernel>> {
        let (Some(source), Some(sizes)) = (&self.kernel, &self.sizes) else {
            return Ok(None);
        };
        let sizes =
            kernel::sizes(sizes).map_err(|why| cere_catalogue::anyhow!(E8002, "--sizes {why}"))?;
        Ok(Some(Kernel {
            source: source.clone(),
            sizes,
            flags: self.build_flags.words.clone(),
        }))
    }

    /// Variants of each codelet: flags and threads.
    fn variants(&self) -> Vec<(Flags, Option<u32>)> {
        let flags = match self.flags.is_empty() {
            true => vec![Flags::default()],
            false => once_each(&self.flags),
        };
        let threads: Vec<Option<u32>> = match self.threads.is_empty() {
            true => vec![None],
            false => once_each(&self.threads).into_iter().map(Some).collect(),
        };
        let of_flags = |f: Flags| {
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
            false => once_each(&self.state),
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
    variant: &(Flags, Option<u32>),
) -> Result<()> {
    let (flags, threads) = variant;
    let settings = options.settings(flags, *threads)?;
    let apart = |state: Option<State>, reason: String, failed| Apart {
        codelet: found.name.clone(),
        flags: flags.text.clone(),
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
            flags: &flags.text,
            state,
        };
        let mut point = document::point(&subject, &work, &times, machine, &mut document.roofs)?;
        point.notes.extend(found.notes.iter().cloned());
        document.points.push(point);
    }
    Ok(())
}

/// A codelet file with its manifest's names; `kernel` gives it others.
fn described(replays: &Replays, file: PathBuf, kernel: Option<&Kernel>) -> Result<(u64, Found)> {
    let (_, manifest, _) = replays.unpack(&file)?;
    let number = manifest.invocation;
    let mut found = Found {
        notes: replays.notes(&manifest),
        name: manifest.name,
        region: manifest.region_name,
        size: None,
        file,
    };
    let size = |k: &Kernel| {
        k.sizes
            .get(usize::try_from(number).ok()?.checked_sub(1)?)
            .copied()
    };
    if let Some((kernel, size)) = kernel.and_then(|k| Some((k, size(k)?))) {
        let name = kernel.source.file_name().unwrap_or_default();
        found.region = name.to_string_lossy().into_owned();
        found.name = format!("{}:{size}", found.region);
        found.size = Some(size);
    }
    Ok((number, found))
}

/// The codelets that are asked for, by region and invocation.
fn found(options: &Options, store: &Store, meter: &Meter) -> Result<Vec<Found>> {
    let kernel = options.kernel()?;
    let files = match &kernel {
        None => find::all(store, &options.what, &cere_system::console::events())?,
        Some(kernel) => {
            let own = std::env::current_exe().context("cannot find this command's own file")?;
            let spinner = progress::spinner(format!("capturing {}", kernel.source.display()));
            let files = kernel.codelets(&own, &meter.cache, options.fresh);
            spinner.finish_and_clear();
            files?
        }
    };
    let all = files
        .into_iter()
        .map(|file| described(meter.replays, file, kernel.as_ref()));
    let mut all: Vec<(u64, Found)> = all.collect::<Result<_>>()?;
    all.sort_by(|a, b| (&a.1.region, a.0).cmp(&(&b.1.region, b.0)));
    Ok(all.into_iter().map(|(_, found)| found).collect())
}

/// Writes the plot, and keeps the document for `cere report`.
fn leave(options: &Options, store: &Store, document: &Document) -> Result<()> {
    if let Some(file) = &options.svg {
        let svg = plot::file(document, &options.level);
        std::fs::write(file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    }
    match store.root().is_dir() && !document.points.is_empty() {
        true => document.keep(store),
        false => Ok(()),
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if let Some(file) = &options.svg {
        options::writable(file).context("--svg")?;
    }
    let (machine, here) = machine(options.machine.as_deref())?;
    if roofs::of(&machine, "f64", 1).is_empty() {
        bail!(
            E6221,
            "the measurement of {} has neither peaks nor bandwidths: run `cere machine` again",
            machine.identity.cpu
        );
    }
    let store = options.common.store()?;
    let replays = Replays::open(&store, &cere_system::console::events())?;
    let meter = Meter::new(&replays, options.counting()?, options.fresh)?;
    let mut document = Document::new(&machine, here, options.shown(&meter)?);
    let all = found(options, &store, &meter)?;
    for variant in options.variants() {
        for one in &all {
            let spinner = progress::spinner(format!("measuring {}", one.name));
            let done = add(&mut document, options, &meter, &machine, one, &variant);
            spinner.finish_and_clear();
            done?;
        }
    }
    document.join();
    leave(options, &store, &document)?;
    match options.common.json {
        true => print::json(&document)?,
        false => print::text(&show::roofline::text(&document))?,
    }
    for apart in document.apart.iter().filter(|a| a.failed) {
        note!(
            "not measured: {}: {}",
            apart.codelet,
            print::reason(&apart.reason)
        );
    }
    Ok(u8::from(document.failed()))
}
