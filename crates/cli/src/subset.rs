//! `cere subset STORE...`: few codelets that stand for the programs of several stores.

use crate::options::{self, Timing, caches};
use crate::show::{self, subset::Shown};
use anyhow::{Context, Result};
use cere_cluster::Genetic;
use cere_format::store::Store;
use cere_predict::subset::document::Scaling;
use cere_predict::subset::expect::{self, Machines};
use cere_predict::subset::make::{self, Choosing, Measured, View};
use cere_predict::subset::{Measurement, choose, train};
use cere_replay::Team;
use cere_system::console::{note, print, progress};
use cere_system::events::Events;
use std::path::PathBuf;

/// Choose few codelets that stand for many programs
#[derive(clap::Args)]
#[command(after_help = "\
Each region of each store's program that matters is a point: the metrics of its codelets (see `cere metrics`), weighted by\n\
their classes' times. The points are clustered (z-scores, Ward), and the one nearest to each centroid represents its cluster.\n\
The archive holds the codelets of the representatives, and of --checks more members of each cluster, by which predictions\n\
know how far they can be trusted. `cere measure` replays them on another machine, `cere predict --machine` predicts the programs'\n\
times there.\n\
\n\
Metrics and reference times are kept in the stores; another call with other clusters takes seconds.\n\
\n\
--machines names measurements of archives made with --whole: from them come the expected errors, of programs that the clusters\n\
were made without, and --train chooses the metrics with them.\n\
\n\
Examples:\n\
\x20 cere subset bt/.cere cg/.cere -o nas.cere\n\
\x20 cere subset */.cere --clusters 18 --checks 1 -o nas.cere --json\n\
\x20 cere subset */.cere --whole -o whole.cere\n\
\x20 cere subset */.cere --machines zen3.json zen5.json --train")]
pub struct Options {
    /// Directories of stores, one for each program
    #[arg(value_name = "STORE", default_value = ".cere")]
    stores: Vec<PathBuf>,
    /// Write the archive here
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write machine-readable output to stdout
    #[arg(long)]
    json: bool,
    /// Number of clusters [default: the elbow of the within-cluster variance]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    clusters: Option<u32>,
    /// Members of each cluster that are measured beside its representative, the farthest first
    #[arg(long, value_name = "N", default_value_t = 1)]
    checks: usize,
    /// Cluster invocations of all regions at once, instead of regions by the classes of their invocations
    #[arg(long)]
    unified: bool,
    /// Metrics that count: all, counts (those that need no clock), thesis, groups or names
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "counts"
    )]
    metrics: Vec<String>,
    /// Take metrics as they are, without a logarithm before the z-scores
    #[arg(long)]
    linear: bool,
    /// Cluster in the principal components that keep this share of the variance, in per cent
    #[arg(long, value_name = "PERCENT", value_parser = options::share)]
    components: Option<f64>,
    /// Put all codelets into the archive, so that predictions can be compared
    #[arg(long)]
    whole: bool,
    /// Link the replays now, so that `cere measure --prebuilt` needs no compiler
    #[arg(long)]
    prebuilt: bool,
    /// Files of `cere measure`, of archives with all codelets: for the expected errors
    #[arg(long, value_name = "FILE", num_args = 1..)]
    machines: Vec<PathBuf>,
    /// Choose the metrics whose clusters predict --machines best, by a genetic algorithm
    #[arg(long, requires = "machines", conflicts_with = "metrics")]
    train: bool,
    /// With --train: sets of metrics in a generation
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "train", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    population: u32,
    /// With --train: generations
    #[arg(long, value_name = "N", default_value_t = 100, requires = "train", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    generations: u32,
    /// With --train: probability that a metric changes sides
    #[arg(long, value_name = "P", default_value_t = 0.01, requires = "train", value_parser = probability)]
    mutation: f64,
    /// Caches to simulate: here, a name or a file
    #[arg(long, value_name = "WHICH", default_value = "sapphire-rapids")]
    geometry: String,
    /// Seed of simulated addresses, of random partitions, and of --train
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Instructions and accesses whose order is looked at, at most: of codelets with more, a sample
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Rounds of reference times over all codelets
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Measure the reference times again
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    timing: Timing,
}

fn probability(text: &str) -> Result<f64> {
    let fits = |value| (0.0..=1.0).contains(&value);
    options::number(text, fits, "a number from 0 to 1 is needed")
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if let Some(output) = &options.output {
        options::writable(output).context("--output")?;
    }
    let stores = options.stores.iter();
    let stores: Vec<Store> = stores
        .map(|path| options::existing_store(path))
        .collect::<Result<_>>()?;
    let measuring = cere_count::metrics::Settings {
        geometry: caches(&options.geometry, "the metrics need")?,
        seed: options.seed,
        budget: options.budget,
    };
    let mut settings = options.timing.settings(Team::default())?;
    settings.repetitions = options.timing.in_rounds();
    let machines = options.machines.iter();
    let machines: Vec<Measurement> = machines
        .map(|file| Measurement::read(file))
        .collect::<Result<_>>()?;
    let events = cere_system::console::events();
    let machines = options.named(&machines, &events);
    let metrics = choose::metrics(&options.metrics).context("--metrics")?;
    let request = make::Request {
        stores: &stores,
        settings: &settings,
        measuring: &measuring,
        rounds: options.rounds as usize,
        again: options.again,
        least: options.clusters.unwrap_or(1) as usize,
        unified: options.unified,
        events: &events,
    };
    let measured = make::measure(&request)?;
    let view = measured.view(options.unified);
    let shown = options.choose(&measured, &view, &machines, &metrics)?;
    if let Some(output) = &options.output {
        let (whole, prebuilt) = (options.whole, options.prebuilt);
        make::write(output, &request, &view, &shown.subset, whole, prebuilt)?;
    }
    match options.json {
        true => print::json(&show::subset::json(&shown))?,
        false => print::text(&show::subset::text(&shown))?,
    }
    if shown.subset.programs.len() == 1 {
        note!("one program only: how well these codelets stand for others is not known");
    }
    Ok(0)
}

impl Options {
    /// `all`, which `--machines` names, with the names of their files.
    fn named<'a>(&self, all: &'a [Measurement], events: &'a Events) -> Machines<'a> {
        let files = self.machines.iter().map(|f| f.display().to_string());
        Machines {
            all,
            files: files.collect(),
            seed: self.seed,
            events,
        }
    }

    fn genetic(&self) -> Genetic {
        Genetic {
            seed: self.seed,
            population: self.population as usize,
            generations: self.generations as usize,
            mutation: self.mutation,
            ..Genetic::default()
        }
    }

    /// The subset by `metrics`, or by those that are trained on `machines`, and what errors to expect of it.
    fn choose(
        &self,
        measured: &Measured,
        view: &View,
        machines: &Machines,
        metrics: &[&'static str],
    ) -> Result<Shown> {
        let scaling = Scaling {
            logarithm: !self.linear,
            components: self.components.map(|percent| percent / 100.0),
        };
        let ratios = machines.ratios(view)?;
        let genetic = self.train.then(|| self.genetic());
        let trained = match &genetic {
            None => None,
            Some(genetic) => {
                let spinner = progress::spinner("training".into());
                let (points, vectors) = (&view.points, &view.vectors);
                let found = train::train(points, vectors, &ratios, scaling, genetic)?;
                spinner.finish_and_clear();
                Some(found)
            }
        };
        let choosing = Choosing {
            metrics: trained.as_ref().map_or(metrics, |t| &t.metrics),
            scaling,
            k: self.clusters.map(|k| k as usize),
            checks: self.checks,
        };
        let genetic = genetic.as_ref();
        let subset = view.subset(&choosing)?;
        let expected = expect::expected(view, &subset, &choosing, machines, &ratios, genetic)?;
        let two_steps = match self.unified {
            false => None,
            true => Some(expect::two_steps(
                measured, &choosing, &subset, machines, genetic,
            )?),
        };
        Ok(Shown {
            expected,
            two_steps,
            trained,
            subset,
        })
    }
}
