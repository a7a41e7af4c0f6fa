//! The search of all regions on their codelets.

mod ahead;
mod arms;
mod baseline;
mod batches;
pub mod budget;
mod confirm;
mod course;
mod drive;
mod evaluator;
mod journal;
pub mod nodes;
pub mod space;
mod spent;
mod task;
#[cfg(test)]
mod tests;

pub use confirm::Winner;
pub use course::Failure;
pub use nodes::Spread;
pub use spent::Spent;

use crate::{AWAITED, Choices, Chosen, Method, Search, Space, Suspect, Variant, suspects};
use ahead::Ahead;
use anyhow::{Context, Error, Result, anyhow, bail};
use batches::{Codes, Crew, Step};
use budget::{Budget, Left};
use cere_console::{note, print, progress};
use cere_format::build::RegionKind;
use cere_format::profile::Profile;
use cere_format::store::Store;
use cere_measure::{Lab, Replays, Shares, Target};
use cere_stats::Gain;
use cere_store::current::{self, Codelet, codelets};
use cere_store::missing;
use cere_store::names::{Named, named, select};
use cere_store::state;
use confirm::{Again, Decision};
use course::Course;
use drive::Pair;
use evaluator::Evaluator;
use nodes::Nodes;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use task::{Done, Task, Work};

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
    /// Where evaluations are made, if not all here.
    pub spread: Option<Spread<'a>>,
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
    let crew = request.spread.map(|spread| {
        let paths: Vec<PathBuf> = targets.iter().map(|t| journal(request, &text, t)).collect();
        let stem = state::hash(&format!("{paths:?}"));
        let stem = store.root().join("tune").join(stem);
        Nodes::new(spread, stem, &targets, &lab, request.jobs)
    });
    let begin = |(place, target)| {
        let search = Search::new(
            opened.space.clone(),
            opened.pipeline.clone(),
            request.search,
            request.seed,
        )?;
        let batch = request.spread.and_then(|spread| spread.batch);
        let search = search.awaiting(batch.unwrap_or(AWAITED));
        let path = journal(request, &text, target);
        if request.again {
            let _ = std::fs::remove_file(&path);
        }
        Course::begin((place, target), search, &path)
    };
    let (found, suspects, searched) = match crew {
        Some(mut crew) => elsewhere(request, &mut crew, &targets, &opened.space, &begin)?,
        None => here(request, &lab, &targets, &opened.space, &begin)?,
    };
    write(store, &found)?;
    Ok(Outcome {
        found,
        suspects,
        program: profile.seconds,
        searched,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Opens the search of a region, by its index.
type Begin<'s, 'a> = dyn Fn((usize, &'a Target)) -> Result<Course<'a>> + 's;

/// What was found, choices that break code, and seconds of the searches.
type Searched = (Vec<Found>, Vec<Suspect>, f64);

/// The budget, and what is left of it.
fn budget(request: &Request, regions: usize, before: u64) -> (Budget, Left) {
    let all = Budget::Evaluations(EACH * regions as u64);
    let budget = request.budget.unwrap_or(all);
    (budget, Left::new(budget, before))
}

/// Notes why a region is not tuned; an error if it was named.
fn leave_out(request: &Request, why: Error) -> Result<()> {
    if !request.regions.is_empty() {
        return Err(why);
    }
    note!("not tuned: {}", print::error(&why));
    Ok(())
}

const NONE_LEFT: &str = "no region can be tuned: see the reasons above";

/// Searches on this machine.
fn here<'a>(
    request: &Request,
    lab: &Lab,
    targets: &'a [Target],
    space: &Space,
    begin: &Begin<'_, 'a>,
) -> Result<Searched> {
    let mut pairs: Vec<Pair> = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let spinner = progress::spinner(format!("replaying {}", target.name));
        let evaluator = Evaluator::begin(lab, target).map_err(Error::msg);
        let pair = evaluator.and_then(|evaluator| Ok((begin((place, target))?, evaluator)));
        spinner.finish_and_clear();
        match pair {
            Ok(pair) => pairs.push(pair),
            Err(error) => leave_out(request, error)?,
        }
    }
    if pairs.is_empty() {
        bail!(NONE_LEFT);
    }
    let before = pairs.iter().map(|(course, _)| course.proposed()).sum();
    let (budget, mut left) = budget(request, pairs.len(), before);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = request.jobs.unwrap_or(cores);
    let searching = Instant::now();
    let list: Vec<&Target> = targets.iter().collect();
    Ahead::with(lab, &list, jobs, |ahead| {
        drive::go_on(lab, &mut pairs, ahead, &mut left, request.target, jobs)
    })?;
    let searched = searching.elapsed().as_secs_f64();
    let suspects = find_suspects(space, pairs.iter().map(|(course, _)| course));
    let all: f64 = pairs.iter().map(|(course, _)| course.weight()).sum();
    let mut found = Vec::new();
    for (mut course, evaluator) in pairs {
        let most = budget.again(course.weight() / all);
        let again = again(&mut course, &suspects, request.threads, most);
        let name = &course.target.name;
        let spinner = progress::spinner(format!("measuring the best of {name} again"));
        let decision = again.decide(lab, course.target, &evaluator.default);
        spinner.finish_and_clear();
        found.push(conclude(course, decision)?);
    }
    Ok((found, suspects, searched))
}

/// Searches on other machines.
fn elsewhere<'a>(
    request: &Request,
    crew: &mut dyn Crew,
    targets: &'a [Target],
    space: &Space,
    begin: &Begin<'_, 'a>,
) -> Result<Searched> {
    if request.again {
        for step in Step::ALL {
            crew.finish(step)?;
        }
    }
    let unusable = batches::begin(crew, targets)?;
    if unusable.len() == targets.len() || !(unusable.is_empty() || request.regions.is_empty()) {
        // What is wrong may be put right before the next call.
        crew.finish(Step::Begin)?;
    }
    let mut courses = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let course = match unusable.get(&place) {
            Some(why) => Err(anyhow!("{why}")),
            None => begin((place, target)),
        };
        match course {
            Ok(course) => courses.push(course),
            Err(error) => leave_out(request, error)?,
        }
    }
    if courses.is_empty() {
        bail!(NONE_LEFT);
    }
    let before = courses.iter().map(Course::proposed).sum();
    let (budget, mut left) = budget(request, courses.len(), before);
    let batch = request.spread.and_then(|spread| spread.batch);
    let batch = batch.unwrap_or(AWAITED * courses.len());
    let searching = Instant::now();
    batches::go_on(crew, &mut courses, &mut left, request.target, batch)?;
    let searched = searching.elapsed().as_secs_f64();
    let suspects = find_suspects(space, courses.iter());
    let found = confirm_elsewhere(crew, courses, &suspects, request.threads, budget)?;
    crew.finish(Step::Confirm)?;
    crew.finish(Step::Begin)?;
    Ok((found, suspects, searched))
}

/// Measures the best variants again on other machines, those of each region on one of them.
fn confirm_elsewhere(
    crew: &mut dyn Crew,
    mut courses: Vec<Course>,
    suspects: &[Suspect],
    threads: &[u32],
    budget: Budget,
) -> Result<Vec<Found>> {
    let all: f64 = courses.iter().map(Course::weight).sum();
    let mut tasks = Vec::new();
    for course in &mut courses {
        let most = budget.again(course.weight() / all);
        tasks.push(Task {
            region: course.place,
            work: Work::Confirm(again(course, suspects, threads, most)),
        });
    }
    let replies = crew.run(Step::Confirm, &tasks, &Codes::new())?;
    if replies.iter().any(|(reply, _)| reply.is_err()) {
        crew.finish(Step::Confirm)?;
    }
    let mut found = Vec::new();
    for (course, (reply, _)) in courses.into_iter().zip(replies) {
        let decision = reply.and_then(|done| match done {
            Done::Decided(decision) => Ok(decision),
            _ => Err("a worker did something else than measure again".to_owned()),
        });
        found.push(conclude(course, decision)?);
    }
    Ok(found)
}

/// The journal of a region's search: another space, method, seed, codelet or size of batches is another search.
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
    let told = match request.spread {
        None => told,
        Some(spread) => format!("{told}\0batch {:?}", spread.batch),
    };
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
fn find_suspects<'c, 'a: 'c>(
    space: &Space,
    courses: impl Iterator<Item = &'c Course<'a>>,
) -> Vec<Suspect> {
    let found = suspects(space, courses.map(Course::outcomes).collect());
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

/// What of a search is measured again.
fn again(course: &mut Course, suspects: &[Suspect], threads: &[u32], most: Duration) -> Again {
    course.ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let better = course.ranked.iter().take_while(|(ratio, _)| *ratio < 1.0);
    let trusted = |v: &&Variant| !suspects.iter().any(|s| s.is_in(v));
    let better = better.map(|(_, variant)| variant).filter(trusted);
    let parallel = course.target.kind == RegionKind::Parallel;
    Again {
        candidates: better.cloned().collect(),
        threads: if parallel { threads } else { &[] }.to_vec(),
        most,
    }
}

/// The outcome of a search whose best variants were measured again.
fn conclude(mut course: Course, decision: Result<Decision, String>) -> Result<Found> {
    let decision = decision.map_err(|why| anyhow!("{}: {why}", course.target.name))?;
    course.failed.extend(decision.wrong);
    if decision.hurried {
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
        winner: decision.winner,
        threads: decision.threads,
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
