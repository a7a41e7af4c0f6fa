//! The search of all regions on their codelets.

mod ahead;
mod arms;
mod baseline;
pub mod budget;
mod confirm;
mod course;
mod drive;
mod journal;
pub mod space;
#[cfg(test)]
mod tests;

pub use confirm::Winner;
pub use course::{Failure, Spent};

use crate::{Choices, Chosen, Method, Search, Space, Suspect, Variant, suspects};
use ahead::Ahead;
use anyhow::{Context, Result, anyhow, bail};
use budget::{Budget, Left};
use cere_console::{note, print, progress};
use cere_format::build::RegionKind;
use cere_format::profile::Profile;
use cere_format::store::Store;
use cere_measure::{Lab, Measure, Replays, Shares, Target};
use cere_stats::Gain;
use cere_store::current::{self, Codelet, codelets};
use cere_store::missing;
use cere_store::names::{Named, named, select};
use cere_store::state;
use course::Course;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Evaluations of each region, unless a budget is given.
const EACH: u64 = 100;

/// What to search, and how.
pub struct Request<'a> {
    /// The store with codelets, records and searches.
    pub store: &'a Store,
    /// Names, globs or unique prefixes of regions; empty for those that matter and have codelets.
    pub regions: &'a [String],
    /// The name of a space, or a file.
    pub space: &'a str,
    /// The search method.
    pub search: Method,
    /// Evaluations or time for all regions together; `None` for 100 evaluations a region.
    pub budget: Option<Budget>,
    /// A region's search ends once it is this many times faster.
    pub target: Option<f64>,
    /// Variants compiled at a time; `None` for as many as processors.
    pub jobs: Option<usize>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Whether flags that change values are tried.
    pub change_values: bool,
    /// Numbers of threads to try for parallel regions.
    pub threads: &'a [u32],
    /// Whether earlier searches are ignored.
    pub again: bool,
    /// How to replay, at the flags of the build.
    pub replays: cere_measure::Settings,
}

/// The outcome of all searches.
pub struct Outcome {
    /// Region by region.
    pub found: Vec<Found>,
    /// Choices that break code.
    pub suspects: Vec<Suspect>,
    /// Seconds of one run of the program.
    pub program: f64,
    /// Seconds of the searches.
    pub searched: f64,
    /// Seconds of the whole command, with the replays as built before and those of the winners after.
    pub seconds: f64,
}

/// The outcome of the search of one region.
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its share of the run's time, 0 to 1.
    pub share: f64,
    /// Evaluations, including earlier searches.
    pub evaluations: u64,
    /// Evaluations of earlier searches.
    pub earlier: u64,
    /// Evaluations without timing because another variant has the same machine code.
    pub same_code: u64,
    /// Variants that failed.
    pub failed: Vec<Failure>,
    /// Why the search ended before its budget.
    pub ended: Option<&'static str>,
    /// Variants with their time over the time as built, the fastest first.
    pub ranked: Vec<(f64, Variant)>,
    /// Where the time went.
    pub spent: Spent,
    /// The variant that was confirmed to be faster, if any.
    pub winner: Option<Winner>,
    /// A number of threads that is faster than that of the capture, with the gain.
    pub threads: Option<(u32, Gain)>,
}

/// Searches, measures the best variants again, and keeps the confirmed ones in the store.
pub fn tune(request: &Request) -> Result<Outcome> {
    let store = request.store;
    let start = Instant::now();
    let mut text = space::text(request.space)?;
    let opened = space::open(request.space, &text, request.change_values)?;
    for choice in &opened.left_out {
        note!("{choice} is not tried: this processor cannot run it");
        // Without it the search is another one.
        text.push_str(&format!("\n# without {choice}"));
    }
    let profile = current::profile(store)?;
    let known = named(&state::current_units(store)?);
    let replays = Replays::open(store)?;
    let targets = targets(request, &replays, &profile, &known, &codelets(store)?)?;
    let _lock = state::lock(store)?;
    let lab = Lab {
        store,
        replays: &replays,
        settings: request.replays.clone(),
        rounds: request.change_values,
    };
    let mut courses = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let search = Search::new(
            opened.space.clone(),
            opened.pipeline.clone(),
            request.search,
            request.seed,
        )?;
        let path = journal(request, &text, target);
        if request.again {
            let _ = std::fs::remove_file(&path);
        }
        let spinner = progress::spinner(format!("replaying {}", target.name));
        let course = Course::begin(&lab, (place, target), search, &path);
        spinner.finish_and_clear();
        match course {
            Ok(course) => courses.push(course),
            Err(error) if request.regions.is_empty() => {
                note!("not tuned: {}", print::error(&error));
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
    let budget = request
        .budget
        .unwrap_or(Budget::Evaluations(EACH * courses.len() as u64));
    let mut left = Left::new(budget, before);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = request.jobs.unwrap_or(cores);
    let searching = Instant::now();
    Ahead::with(&lab, &targets, jobs, |ahead| {
        drive::go_on(&lab, &mut courses, ahead, &mut left, request.target, jobs)
    })?;
    let searched = searching.elapsed().as_secs_f64();
    let suspects = find_suspects(&opened.space, &courses);
    let mut found = Vec::new();
    let all: f64 = courses.iter().map(Course::weight).sum();
    for course in courses {
        let most = budget.again(course.weight() / all);
        found.push(confirm_winner(
            &lab,
            course,
            &suspects,
            request.threads,
            most,
        )?);
    }
    write(store, &found)?;
    Ok(Outcome {
        found,
        suspects,
        program: profile.seconds,
        searched,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// The journal of a region's search: another space, method, seed or codelet is another search.
fn journal(request: &Request, space: &str, target: &Target) -> PathBuf {
    let tolerance = &request.replays.tolerance;
    let codelets: Vec<&str> = target.members.iter().map(|m| m.sha256.as_str()).collect();
    let told = format!(
        "{}\0{space}\0{}\0{}\0{}\0{:?}",
        target.name,
        request.search,
        request.seed,
        request.change_values,
        (codelets, tolerance.double, tolerance.single)
    );
    let name = format!("{}.jsonl", state::hash(&told));
    request.store.root().join("tune").join(name)
}

/// The regions to tune.
fn targets(
    request: &Request,
    replays: &Replays,
    profile: &Profile,
    known: &[Named],
    codelets: &[Codelet],
) -> Result<Vec<Target>> {
    let shares = Shares::of(profile)?;
    let has = |n: &&Named| codelets.iter().any(|c| c.1.key == n.key);
    let chosen: Vec<&Named> = match request.regions.is_empty() {
        true => shares.mostly_own(known).filter(has).collect(),
        false => select(known, request.regions)?,
    };
    if chosen.is_empty() {
        return Err(missing::codelets(request.store, &[], |line| {
            format!("no region that matters has a codelet: `{line}` takes some")
        }));
    }
    let mut targets = Vec::new();
    for named in chosen {
        match Target::of(replays, named, shares.of_region(&named.key), codelets) {
            Ok(target) => targets.push(target),
            Err(error) if request.regions.is_empty() => note!("{error}"),
            Err(error) => return Err(error),
        }
    }
    targets.sort_by(|a, b| b.share.total_cmp(&a.share));
    if targets.is_empty() {
        bail!("no region can be tuned: see the reasons above");
    }
    Ok(targets)
}

/// Choices that break code in any of the regions; prints each of them.
fn find_suspects(space: &Space, courses: &[Course]) -> Vec<Suspect> {
    let found = suspects(space, courses.iter().map(Course::outcomes).collect());
    for suspect in &found {
        note!(
            "{} of {} variants with {} failed, {} of {} without it: nothing with it is chosen",
            suspect.failed,
            suspect.tried,
            shell_words::join(&suspect.choice),
            suspect.failed_without,
            suspect.tried_without
        );
    }
    found
}

/// Measures the best variants of a search again.
fn confirm_winner(
    lab: &dyn Measure,
    mut course: Course,
    suspects: &[Suspect],
    threads: &[u32],
    most: Duration,
) -> Result<Found> {
    let spinner = progress::spinner(format!(
        "measuring the best of {} again",
        course.target.name
    ));
    course.ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let better = course.ranked.iter().take_while(|(ratio, _)| *ratio < 1.0);
    let trusted = |v: &&Variant| !suspects.iter().any(|s| s.is_in(v));
    let better = better.map(|(_, variant)| variant).filter(trusted);
    let candidates: Vec<Variant> = better.cloned().collect();
    let unusable = |why: String| anyhow!("{}: {why}", course.target.name);
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
        note!(
            "{}: the budget was over before its best variants were measured again, so no winner was confirmed: a longer \
             --budget goes on with this search",
            course.target.name
        );
    }
    Ok(Found {
        name: course.target.name.clone(),
        share: course.target.share,
        evaluations: course.told,
        earlier: course.earlier,
        same_code: course.same,
        failed: course.failed,
        ended: course.ended,
        ranked: course.ranked,
        spent: course.spent,
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
        let name = &found.name;
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
            flags: shell_words::join(&variant.flags),
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

impl Found {
    /// How many times faster the region is with the winner and its number of threads.
    pub fn gain(&self) -> f64 {
        let flags = self.winner.as_ref().map_or(1.0, |w| w.gain.ratio);
        let threads = self.threads.as_ref().map_or(1.0, |t| t.1.ratio);
        1.0 / (flags * threads)
    }
}
