//! `cere guard`: performance tests of regions.

use crate::options::{Timing, existing_store, geometry};
use crate::show;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::store::Store;
use cere_guard::keep::{self, Adding};
use cere_guard::{Fixture, Guarded, Work, output};
use cere_measure::Replays;
use cere_replay::Team;
use cere_system::console::{note, print, progress, warning};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Performance tests: the sources as they are against a baseline, region by region
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
`cere guard add` keeps captured regions in the folder cere-guard, which belongs into the repository. `cere guard` compiles the\n\
sources as they are, as the build compiled them, runs baseline and new code on the captured memory, and compares results, counts\n\
and times. Both codes are compiled in the same run: another machine or compiler is no alarm. A fresh checkout, cere and LLVM are\n\
all that it needs.\n\
\n\
Exit status: 0 if no region is slower, wrong or failed; else 1.\n\
\n\
Examples:\n\
\x20 cere guard add 'solve@*'             # captured before with `cere capture`\n\
\x20 cere guard\n\
\x20 cere guard --no-times --junit guard.xml\n\
\x20 cere guard --github                  # annotations and summary in a workflow\n\
\x20 cere guard accept 'solve@*'          # its code of today is the new baseline\n\
\x20 cere guard list\n\
\x20 cere guard remove 'solve@*'")]
pub struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    /// Regions to test: names, globs or unique prefixes; all if none is given
    what: Vec<String>,
    /// Write machine-readable output to stdout
    #[arg(long)]
    json: bool,
    /// Compare results and counts alone, which no noise changes
    #[arg(long)]
    no_times: bool,
    /// Write the results as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the results as a table in Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write annotations on the source lines of regions that failed, and the table to $GITHUB_STEP_SUMMARY
    #[arg(long, conflicts_with = "json")]
    github: bool,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    place: Place,
}

/// Where the tests and what can be made again are.
#[derive(clap::Args)]
struct Place {
    /// Folder of the tests [default: the nearest cere-guard, here or above]
    #[arg(long, value_name = "DIR", global = true)]
    tests: Option<PathBuf>,
    /// Directory of the store: `add` takes codelets from it, the others only use its cache
    #[arg(long, value_name = "DIR", default_value = ".cere", global = true)]
    store: PathBuf,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Make captured regions tests
    Add {
        /// Regions or codelets of the store
        #[arg(required = true, value_name = "REGION")]
        what: Vec<String>,
        /// Most megabytes of a region
        #[arg(long, value_name = "MB", default_value_t = 8.0, value_parser = crate::options::seconds)]
        max_size: f64,
    },
    /// List the tests
    List,
    /// Remove tests
    Remove {
        /// Regions: names, globs or unique prefixes
        #[arg(required = true, value_name = "REGION")]
        what: Vec<String>,
    },
    /// Make the code of the sources as they are the baseline
    Accept {
        /// Regions: names, globs or unique prefixes; all if none is given
        #[arg(value_name = "REGION")]
        what: Vec<String>,
    },
}

impl Place {
    fn fixture(&self) -> Result<Fixture> {
        let folder = match &self.tests {
            Some(named) => named.clone(),
            None => Fixture::find()?,
        };
        Fixture::open(&folder)
    }

    /// The store, which need not exist.
    fn store(&self) -> Result<Store> {
        Ok(Store::new(std::path::absolute(&self.store)?))
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if options.json && options.action.is_some() {
        bail!(
            E8001,
            "--json is for the tests themselves: `cere guard --json`"
        );
    }
    match &options.action {
        None => check(options),
        Some(Action::Add { what, max_size }) => add(options, what, (max_size * 1e6) as u64),
        Some(Action::List) => list(&options.place.fixture()?),
        Some(Action::Remove { what }) => remove(&options.place.fixture()?, what),
        Some(Action::Accept { what }) => accept(options, what),
    }
}

/// What tests are run with.
fn work<'a>(options: &Options, fixture: &Fixture, replays: &'a Replays<'a>) -> Result<Work<'a>> {
    let mut settings = options.timing.settings(Team::default())?;
    if settings.repetitions == Default::default() {
        settings.repetitions.least = 3;
        settings.repetitions.seconds = 0.05;
    }
    let caches = geometry(fixture.geometry())
        .with_context(|| format!("geometry in {}", fixture.folder().display()))?;
    Work::new(replays, settings, caches, !options.no_times)
}

fn check(options: &Options) -> Result<u8> {
    for file in [&options.junit, &options.markdown].into_iter().flatten() {
        crate::options::writable(file)?;
    }
    let fixture = options.place.fixture()?;
    let tests = fixture.tests(&options.what)?;
    if options.what.is_empty() {
        for unused in fixture.unused_limits(&tests) {
            warning!("guard.toml has limits for {unused}, and no test is called so");
        }
    }
    let store = options.place.store()?;
    let events = cere_system::console::events();
    let replays = Replays::open(&store, &events)?;
    let work = work(options, &fixture, &replays)?;
    let mut all = Vec::new();
    for test in &tests {
        let spinner = progress::spinner(format!("testing {}", test.record.name));
        all.push(work.check(&fixture, test));
        spinner.finish_and_clear();
    }
    match options.json {
        true => print::json(&show::guard::json(&all))?,
        false => print::text(&show::guard::text(&all))?,
    }
    let written = |path: &Path, text: &str| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    if let Some(path) = &options.junit {
        written(path, &output::junit(&all)?)?;
    }
    if let Some(path) = &options.markdown {
        written(path, &output::markdown(&all))?;
    }
    if options.github {
        print::out(&output::annotations(&all))?;
        append_summary(&output::markdown(&all))?;
    }
    Ok(u8::from(!all.iter().all(|checked| checked.state.is_good())))
}

/// Appends to the summary of a step of a workflow.
fn append_summary(text: &str) -> Result<()> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY") else {
        note!("GITHUB_STEP_SUMMARY is not set: no summary is written");
        return Ok(());
    };
    let path = PathBuf::from(path);
    let file = std::fs::File::options()
        .append(true)
        .create(true)
        .open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write GITHUB_STEP_SUMMARY, {}", path.display()))
}

fn add(options: &Options, what: &[String], largest: u64) -> Result<u8> {
    let store = existing_store(&options.place.store)?;
    let replays = Replays::open(&store, &cere_system::console::events())?;
    let regions = keep::regions(&store, &replays, what)?;
    let folder = Fixture::find_or_make(options.place.tests.as_deref())?;
    let fixture = Fixture::open(&folder)?;
    let work = work(options, &fixture, &replays)?;
    let adding = Adding {
        fixture: &fixture,
        store: &store,
        work: &work,
        largest,
    };
    for (name, files) in &regions {
        let spinner = progress::spinner(format!("adding {name}"));
        let added = adding.add(name, files, |text| note!("{name}: {text}"));
        spinner.finish_and_clear();
        let added = added.with_context(|| format!("{name} is not added"))?;
        print::out(&format!(
            "{name}: {:.1} MB in {}\n",
            added.bytes() as f64 / 1e6,
            added.folder.display()
        ))?;
    }
    Ok(0)
}

fn list(fixture: &Fixture) -> Result<u8> {
    let row = |test: &Guarded| {
        let record = &test.record;
        let limits = fixture.limits(&record.name);
        vec![
            record.name.clone(),
            record.codelets.len().to_string(),
            format!("{:.1} MB", test.bytes() as f64 / 1e6),
            format!("{} %", limits.time),
            format!("{} %", limits.counts),
            if record.accepted {
                "accepted"
            } else {
                "captured"
            }
            .to_owned(),
            record.baseline.cpu.clone(),
        ]
    };
    let heading = [
        "region",
        "codelets",
        "size",
        "time",
        "counts",
        "<baseline",
        "<taken on",
    ];
    let tests = fixture.tests(&[])?;
    print::text(&print::table_of_names(
        &heading,
        tests.iter().map(row).collect(),
    ))?;
    Ok(0)
}

fn remove(fixture: &Fixture, what: &[String]) -> Result<u8> {
    for test in fixture.tests(what)? {
        std::fs::remove_dir_all(&test.folder)
            .with_context(|| format!("cannot remove {}", test.folder.display()))?;
        print::out(&format!("{}: removed\n", test.record.name))?;
    }
    Ok(0)
}

fn accept(options: &Options, what: &[String]) -> Result<u8> {
    let fixture = options.place.fixture()?;
    let tests = fixture.tests(what)?;
    let store = options.place.store()?;
    let replays = Replays::open(&store, &cere_system::console::events())?;
    let work = work(options, &fixture, &replays)?;
    let mut failed = 0;
    for test in &tests {
        let name = &test.record.name;
        let spinner = progress::spinner(format!("accepting {name}"));
        let accepted = keep::accept(&fixture, &work, test);
        spinner.finish_and_clear();
        match accepted {
            Ok(true) => print::out(&format!("{name}: accepted\n"))?,
            Ok(false) => print::out(&format!("{name}: is the baseline already\n"))?,
            Err(error) => {
                failed += 1;
                warning!("{name} is not accepted: {}", print::error(&error));
            }
        }
    }
    if failed > 0 {
        bail!(
            E6115,
            "{failed} of {} regions were not accepted",
            tests.len()
        );
    }
    Ok(0)
}
