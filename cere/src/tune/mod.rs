//! `cere tune [REGION...]`: searches compiler flags for each region, on its codelets.

mod ahead;
mod baseline;
mod budget;
mod confirm;
mod course;
mod drive;
mod journal;
mod lab;
mod shares;
mod show;
mod space;
mod target;

pub use lab::{Builds, Lab};
pub use shares::Shares;
pub use target::{Target, between};

use crate::check::{Codelet, current};
use crate::hybrid::{Choices, Chosen};
use crate::names::{Named, named, select};
use crate::options::{self, Common};
use crate::replay::{Replays, Request, Timing};
use crate::{print, progress, state, words};
use ahead::Ahead;
use anyhow::{Context, Result, bail};
use budget::{Budget, Left};
use cere_format::build::RegionKind;
use cere_format::profile::Profile;
use cere_format::replay::Repetitions;
use cere_format::store::Store;
use cere_replay::{Team, Tolerance};
use cere_tune::{Gain, Method, Search, Space, Suspect, Variant, suspects};
use confirm::Winner;
use course::Course;
use show::Took;
use std::path::PathBuf;
use std::time::Duration;

/// Evaluations of each region, unless a budget is given.
const EACH: u64 = 100;

/// Search compiler flags for each region, on its codelets
#[derive(clap::Args)]
#[command(after_help = "\
Each variant of a region is compiled and its codelets are replayed: their time counts, each for its class of\n\
invocations, and their result must be the original's. What differs in rounding alone, within the tolerances, is right; a\n\
variant with another result is told and never chosen. Variants with the same machine code are measured once.\n\
\n\
Spaces: levels (-O0 to -Os), codegen (flags of the code generator and of single optimisations), passes (pipelines made\n\
from that of -O3), full (both); or a file: `cere tune --show-space codegen` prints one to start from.\n\
Searches: random; genetic; groups, which learns which groups of flags matter.\n\
\n\
A search that was interrupted goes on where it was. The winner is measured again against the code as built, in\n\
alternation, before it is believed. `cere hybrid` links what was found.\n\
\n\
Examples:\n\
\x20 cere tune\n\
\x20 cere tune 'solve@*' --space levels\n\
\x20 cere tune --budget 30m --search genetic --target 1.10")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Regions: names, globs or unique prefixes [default: those with codelets that take more than 1 % of the run]
    regions: Vec<String>,
    /// What may be tried: the name of a space, or a file
    #[arg(long, value_name = "SPACE", default_value = "codegen")]
    space: String,
    /// Print a space and end
    #[arg(long, value_name = "SPACE")]
    show_space: Option<String>,
    /// How it is searched: groups, genetic or random
    #[arg(long, value_name = "METHOD", default_value = "groups")]
    search: Method,
    /// Evaluations (400) or time (90s, 30m, 2h) for all regions together [default: 100 evaluations a region]
    #[arg(long, value_name = "BUDGET", allow_hyphen_values = true)]
    budget: Option<Budget>,
    /// A region is done once it is so many times faster; the budget goes to the others
    #[arg(long, value_name = "X", value_parser = gain_wanted)]
    target: Option<f64>,
    /// Variants that are compiled at a time, ahead of those that are timed [default: the processors there are]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Decides what is drawn at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Try flags that change values, like -ffast-math, as well: results count within the tolerances
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
    /// Forget what earlier searches found
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    timing: Timing,
}

fn gain_wanted(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 1.0 && value < 1e6 => Ok(value),
        _ => Err("a number above 1 is needed: 1.04 is 4 % faster".into()),
    }
}

/// What became of a region.
pub struct Found<'a> {
    /// Its search.
    pub course: Course<'a>,
    /// What is believed, if anything is faster.
    pub winner: Option<Winner>,
    /// Threads that are better than as many as at capture.
    pub threads: Option<(u32, Gain)>,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if let Some(name) = &options.show_space {
        print::out(&space::text(name)?)?;
        return Ok(0);
    }
    let store = options.common.existing_store()?;
    let start = std::time::Instant::now();
    let mut text = space::text(&options.space)?;
    let opened = space::open(&options.space, &text, options.change_values)?;
    for choice in &opened.left_out {
        eprintln!("cere: {choice} is not tried: this processor cannot run it");
        // Without it the search is another one.
        text.push_str(&format!("\n# without {choice}"));
    }
    let profile = state::current_profile(&store)?;
    let known = named(&state::current_units(&store)?);
    let replays = Replays::open(&store)?;
    let targets = targets(options, &replays, &profile, &known, &current(&store)?)?;
    let _lock = state::lock(&store)?;
    let lab = Lab {
        store: &store,
        replays: &replays,
        request: options.request()?,
        rounds: options.change_values,
    };
    let mut courses = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let search = Search::new(
            opened.space.clone(),
            opened.pipeline.clone(),
            options.search,
            options.seed,
        )?;
        let path = options.journal(&store, &text, target);
        if options.again {
            let _ = std::fs::remove_file(&path);
        }
        let spinner = progress::spinner(format!("replaying {}", target.name));
        let course = Course::begin(&lab, (place, target), search, &path);
        spinner.finish_and_clear();
        match course {
            Ok(course) => courses.push(course),
            Err(error) if options.regions.is_empty() => {
                eprintln!("cere: not tuned: {}", print::error(&error));
            }
            Err(error) => return Err(error),
        }
    }
    if courses.is_empty() {
        bail!("no region can be tuned: see the reasons above");
    }
    let before: u64 = courses
        .iter()
        .map(|c| c.told + c.pending.len() as u64)
        .sum();
    let budget = options
        .budget
        .unwrap_or(Budget::Evaluations(EACH * courses.len() as u64));
    let mut left = Left::new(budget, before);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.map_or(cores, usize::from);
    let searching = std::time::Instant::now();
    Ahead::with(&lab, &targets, jobs, |ahead| {
        drive::go_on(&lab, &mut courses, ahead, &mut left, options.target, jobs)
    })?;
    let searched = searching.elapsed().as_secs_f64();
    let suspects = suspected(&opened.space, &courses);
    let mut found = Vec::new();
    let all: f64 = courses.iter().map(Course::weight).sum();
    for course in courses {
        let most = budget.again(course.weight() / all);
        found.push(settle(&lab, course, &suspects, &options.threads, most)?);
    }
    write(&store, &found)?;
    let took = Took {
        program: profile.seconds,
        searched,
        all: start.elapsed().as_secs_f64(),
    };
    if options.common.json {
        print::json(&show::json(&found, &suspects, &took))?;
    } else {
        print::out(&show::text(&found, &took))?;
    }
    if found
        .iter()
        .all(|f| f.winner.is_none() && f.threads.is_none())
    {
        eprintln!("cere: nothing is surely faster than the code as built");
    } else {
        eprintln!("cere: `cere hybrid -o app.tuned -- PROGRAM ARGUMENTS` links it");
    }
    Ok(0)
}

impl Options {
    fn request(&self) -> Result<Request> {
        Ok(Request {
            repetitions: match self.timing.repetitions() {
                given if given != Repetitions::default() => given,
                // Many variants are better than much about one.
                _ => Repetitions {
                    least: 10,
                    most: 200,
                    precision: 0.003,
                    seconds: 0.08,
                },
            },
            tolerance: Tolerance {
                double: self.tolerance,
                single: self.float_tolerance,
            },
            ..self.timing.request(Team::default())?
        })
    }

    /// Where the search of a region is written down: another space, method, seed or codelet is another search.
    fn journal(&self, store: &Store, space: &str, target: &Target) -> PathBuf {
        let codelets: Vec<&str> = target.members.iter().map(|m| m.sha256.as_str()).collect();
        let told = format!(
            "{}\0{space}\0{}\0{}\0{}\0{:?}",
            target.name,
            self.search,
            self.seed,
            self.change_values,
            (codelets, self.tolerance, self.float_tolerance)
        );
        let name = format!("{}.jsonl", state::hash(&told));
        store.root().join("tune").join(name)
    }
}

/// The regions that are meant.
fn targets(
    options: &Options,
    replays: &Replays,
    profile: &Profile,
    known: &[Named],
    codelets: &[Codelet],
) -> Result<Vec<Target>> {
    let shares = Shares::of(profile)?;
    let has = |n: &&Named| codelets.iter().any(|c| c.1.key == n.key);
    let chosen: Vec<&Named> = match options.regions.is_empty() {
        true => shares.own(known).filter(has).collect(),
        false => select(known, &options.regions)?,
    };
    if chosen.is_empty() {
        bail!(
            "no region that matters has a codelet: `cere capture -- PROGRAM ARGUMENTS` takes some"
        );
    }
    let mut targets = Vec::new();
    for named in chosen {
        match Target::of(replays, named, shares.of_region(&named.key), codelets) {
            Ok(target) => targets.push(target),
            Err(error) if options.regions.is_empty() => eprintln!("cere: {error}"),
            Err(error) => return Err(error),
        }
    }
    targets.sort_by(|a, b| b.share.total_cmp(&a.share));
    if targets.is_empty() {
        bail!("no region can be tuned: see the reasons above");
    }
    Ok(targets)
}

/// Choices that break code in any of the regions, told.
fn suspected(space: &Space, courses: &[Course]) -> Vec<Suspect> {
    let found = suspects(space, courses.iter().map(Course::outcomes).collect());
    for suspect in &found {
        eprintln!(
            "cere: {} of {} variants with {} failed, {} of {} without it: nothing with it is chosen",
            suspect.failed,
            suspect.tried,
            words::join(&suspect.choice),
            suspect.failed_without,
            suspect.tried_without
        );
    }
    found
}

/// What of a search is believed.
fn settle<'a>(
    lab: &Lab,
    mut course: Course<'a>,
    suspects: &[Suspect],
    threads: &[u32],
    most: Duration,
) -> Result<Found<'a>> {
    let spinner = progress::spinner(format!(
        "measuring the best of {} again",
        course.target.name
    ));
    course.ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let better = course.ranked.iter().take_while(|(ratio, _)| *ratio < 1.0);
    let trusted = |v: &&Variant| !suspects.iter().any(|s| s.is_in(v));
    let better = better.map(|(_, variant)| variant).filter(trusted);
    let candidates: Vec<Variant> = better.cloned().collect();
    let unusable = |why: String| anyhow::anyhow!("{}: {why}", course.target.name);
    let mut wrong = Vec::new();
    let confirmed = confirm::confirm(
        lab,
        course.target,
        &course.default,
        &candidates,
        most,
        &mut wrong,
    )
    .map_err(unusable)?;
    let winner = confirmed.winner;
    let mut best = None;
    if !threads.is_empty() && course.target.kind == RegionKind::Parallel {
        let variant = winner
            .as_ref()
            .map(|w| w.variant.clone())
            .unwrap_or_default();
        best = confirm::threads(lab, course.target, &variant, threads).map_err(unusable)?;
    }
    course.failed.extend(wrong);
    spinner.finish_and_clear();
    if confirmed.hurried {
        course.ended = Some("the budget was over before the best was measured again");
        eprintln!(
            "cere: {}: the budget was over before its best variants were measured again, so none is believed: a longer \
             --budget goes on with this search",
            course.target.name
        );
    }
    Ok(Found {
        course,
        winner,
        threads: best,
    })
}

/// Keeps the choices, with those of regions that were tuned before.
fn write(store: &Store, found: &[Found]) -> Result<()> {
    let file = store.tuned();
    let mut choices = match file.is_file() {
        true => Choices::read(&file)?,
        false => Choices::of(Vec::new()),
    };
    for found in found {
        let name = &found.course.target.name;
        choices.regions.retain(|r| r.name != *name);
        if found.winner.is_none() && found.threads.is_none() {
            continue;
        }
        let variant = found
            .winner
            .as_ref()
            .map(|w| w.variant.clone())
            .unwrap_or_default();
        choices.regions.push(Chosen {
            name: name.clone(),
            flags: words::join(&variant.flags),
            passes: variant.passes,
            threads: found.threads.map(|(n, _)| n),
            bind: None,
            gain: Some(found.gain()),
        });
    }
    choices
        .write(&file)
        .context("what was found cannot be kept")
}

impl Found<'_> {
    /// How many times faster the region is with what was found.
    pub fn gain(&self) -> f64 {
        let flags = self.winner.as_ref().map_or(1.0, |w| w.gain.ratio);
        let threads = self.threads.as_ref().map_or(1.0, |t| t.1.ratio);
        1.0 / (flags * threads)
    }
}
