//! Runs all searches and confirms their winners: on this machine, or on others.

use super::ahead::Ahead;
use super::batches::{self, Codes, Crew, Step};
use super::budget::{Budget, Left};
use super::confirm::{Again, Decision};
use super::course::Course;
use super::drive::{self, Pair};
use super::evaluator::Evaluator;
use super::found::Found;
use super::request::Request;
use super::task::{Done, Task, Work};
use crate::{AWAITED, Space, Suspect, Variant, suspects};
use anyhow::{Context, Error, Result};
use cere_catalogue::bail;
use cere_format::build::RegionKind;
use cere_measure::{Lab, Target};
use cere_system::console::print;
use cere_system::events::Events;
use std::time::{Duration, Instant};

/// Evaluations of each region, unless a budget is given.
const EACH: u64 = 100;

/// Opens the search of a region, by its index.
pub type Begin<'s, 'a> = dyn Fn((usize, &'a Target)) -> Result<Course<'a>> + 's;

/// What was found, choices that break code, and seconds of the searches.
pub type Searched = (Vec<Found>, Vec<Suspect>, f64);

/// The budget, of which what was proposed before and the time since `start` is used up.
fn budget(request: &Request, courses: &[&Course], start: Instant) -> Left {
    let all = Budget::Evaluations(EACH * courses.len() as u64);
    let before = courses.iter().map(|course| course.proposed()).sum();
    Left::new(request.budget.unwrap_or(all), start, before).by(request.goal)
}

/// The courses with the part that each has of the time for measuring again: none for those that have nothing to measure.
fn parts<'c, 'a: 'c>(courses: impl Iterator<Item = &'c Course<'a>>) -> Vec<f64> {
    let weights: Vec<f64> = courses
        .map(|course| match course.hopes() {
            true => course.weight(),
            false => 0.0,
        })
        .collect();
    (0..weights.len())
        .map(|at| weights[at] / weights[at..].iter().sum::<f64>().max(f64::MIN_POSITIVE))
        .collect()
}

/// Notes why a region is not tuned; an error if it was named.
fn leave_out(request: &Request, why: Error) -> Result<()> {
    if !request.regions.is_empty() {
        return Err(why);
    }
    let why = print::error(&why);
    request.events.note(format!("not tuned: {why}"));
    Ok(())
}

const NONE_LEFT: &str = "no region can be tuned: see the reasons above";

/// Searches on this machine.
pub fn here<'a>(
    request: &Request,
    lab: &Lab,
    targets: &'a [Target],
    space: &Space,
    begin: &Begin<'_, 'a>,
) -> Result<Searched> {
    let start = Instant::now();
    let mut pairs: Vec<Pair> = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let replaying = request.events.work(format!("replaying {}", target.name));
        let evaluator = Evaluator::begin(lab, target);
        let pair = evaluator.and_then(|evaluator| Ok((begin((place, target))?, evaluator)));
        drop(replaying);
        match pair {
            Ok(pair) => pairs.push(pair),
            Err(error) => leave_out(request, error)?,
        }
    }
    if pairs.is_empty() {
        bail!(E6404, "{NONE_LEFT}");
    }
    let courses: Vec<&Course> = pairs.iter().map(|(course, _)| course).collect();
    let mut left = budget(request, &courses, start);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = request.jobs.unwrap_or(cores);
    let searching = Instant::now();
    let list: Vec<&Target> = targets.iter().collect();
    Ahead::with(lab, &list, jobs, |ahead| {
        let wanted = request.target;
        drive::go_on(
            request.events,
            lab,
            &mut pairs,
            ahead,
            &mut left,
            wanted,
            jobs,
        )
    })?;
    let searched = searching.elapsed().as_secs_f64();
    let suspects = find_suspects(
        request.events,
        space,
        pairs.iter().map(|(course, _)| course),
    );
    let parts = parts(pairs.iter().map(|(course, _)| course));
    let mut found = Vec::new();
    for ((mut course, mut evaluator), part) in pairs.into_iter().zip(parts) {
        let again = again(&mut course, &suspects, request.threads, left.again(part));
        let name = &course.target.name;
        let text = format!("measuring the best of {name} again");
        let measuring = request.events.work(text);
        let decision = evaluator.decide(lab, &again);
        course.found.spent += evaluator.spent;
        drop(measuring);
        found.push(conclude(request.events, course, decision)?);
    }
    Ok((found, suspects, searched))
}

/// Searches on other machines.
pub fn elsewhere<'a>(
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
    let start = Instant::now();
    let mut unusable = batches::begin(crew, targets)?;
    if unusable.len() == targets.len() || !(unusable.is_empty() || request.regions.is_empty()) {
        // What is wrong may be put right before the next call.
        crew.finish(Step::Begin)?;
    }
    let mut courses = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let course = match unusable.remove(&place) {
            Some(why) => Err(why),
            None => begin((place, target)),
        };
        match course {
            Ok(course) => courses.push(course),
            Err(error) => leave_out(request, error)?,
        }
    }
    if courses.is_empty() {
        bail!(E6404, "{NONE_LEFT}");
    }
    let mut left = budget(request, &courses.iter().collect::<Vec<_>>(), start);
    let batch = request.spread.and_then(|spread| spread.batch);
    let batch = batch.unwrap_or(AWAITED * courses.len());
    let searching = Instant::now();
    let (events, wanted) = (request.events, request.target);
    batches::go_on(events, crew, &mut courses, &mut left, wanted, batch)?;
    let searched = searching.elapsed().as_secs_f64();
    let suspects = find_suspects(request.events, space, courses.iter());
    let found = confirm_elsewhere(events, crew, courses, &suspects, request.threads, &left)?;
    crew.finish(Step::Confirm)?;
    crew.finish(Step::Begin)?;
    Ok((found, suspects, searched))
}

/// Measures the best variants again on other machines, those of each region on one of them.
pub fn confirm_elsewhere(
    events: &Events,
    crew: &mut dyn Crew,
    mut courses: Vec<Course>,
    suspects: &[Suspect],
    threads: &[u32],
    left: &Left,
) -> Result<Vec<Found>> {
    let all: f64 = courses.iter().map(Course::weight).sum();
    let mut tasks = Vec::new();
    for course in &mut courses {
        let most = left.again(course.weight() / all);
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
    for (mut course, (reply, spent)) in courses.into_iter().zip(replies) {
        course.found.spent += spent;
        let decision = reply.and_then(|done| match done {
            Done::Decided(decision) => Ok(decision),
            _ => bail!(E9001, "a worker did something else than measure again"),
        });
        found.push(conclude(events, course, decision)?);
    }
    Ok(found)
}

/// Choices that break code in any of the regions; notes each of them.
pub fn find_suspects<'c, 'a: 'c>(
    events: &Events,
    space: &Space,
    courses: impl Iterator<Item = &'c Course<'a>>,
) -> Vec<Suspect> {
    let found = suspects(space, courses.map(Course::outcomes).collect());
    for suspect in &found {
        events.note(format!(
            "{} of {} variants with {} failed, {} of {} without it: nothing with it is chosen",
            suspect.failed,
            suspect.tried,
            shell_words::join(&suspect.choice),
            suspect.failed_without,
            suspect.tried_without
        ));
    }
    found
}

/// What of a search is measured again.
pub fn again(course: &mut Course, suspects: &[Suspect], threads: &[u32], most: Duration) -> Again {
    course.found.ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let hopes = course.hopes();
    let ranked = course.found.ranked.iter();
    let better = ranked.take_while(|(ratio, _)| hopes && *ratio < 1.0);
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
pub fn conclude(events: &Events, mut course: Course, decision: Result<Decision>) -> Result<Found> {
    let decision = decision.with_context(|| course.target.name.clone())?;
    course.found.failed.extend(decision.wrong);
    if decision.hurried {
        course.found.ended = Some("the budget was over before the best was measured again");
        events.note(format!(
            "{}: the budget was over before its best variants were measured again, so no winner was confirmed: a longer \
             --budget goes on with this search",
            course.target.name
        ));
    }
    Ok(Found {
        winner: decision.winner,
        threads: decision.threads,
        ..course.found
    })
}
