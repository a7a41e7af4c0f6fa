//! Runs the searches of all regions in batches whose evaluations other machines do.
//!
//! A batch is proposed, done in any order at any place, and reported to the searches in the order of proposal. So what is
//! proposed and found depends on seed, size of the batches and outcomes, not on the number of machines or the size of chunks.

use super::budget::Left;
use super::course::{Course, TARGET_REACHED, Turn};
use super::spent::Spent;
use super::task::{Done, Task, Work};
use crate::Turns;
use anyhow::{Error, Result};
use cere_catalogue::{anyhow, bail};
use cere_measure::Target;
use cere_system::events::Events;
use std::collections::BTreeMap;

/// Outcomes of machine code, by region.
pub type Codes = BTreeMap<usize, BTreeMap<String, Option<f64>>>;

/// What came of a task, or why it could not be done.
pub type Reply = Result<Done>;

/// A step of tuning. Each has a job of its own, which lasts from the first task until the outcomes are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The code as built is replayed.
    Begin,
    /// A batch is evaluated.
    Search,
    /// The best variants are measured again, as the target may be reached.
    Reach,
    /// The best variants are measured again in the end.
    Confirm,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Begin, Self::Search, Self::Reach, Self::Confirm];
}

/// Other machines.
pub trait Crew {
    /// The tasks of the job of a step that was not finished; empty if there is none.
    fn begun(&mut self, step: Step) -> Result<Vec<Task>>;

    /// Does `tasks` and returns what came of each, in their order. Those that an earlier call did are not done again.
    ///
    /// # Errors
    /// Some have no outcome.
    fn run(&mut self, step: Step, tasks: &[Task], codes: &Codes) -> Result<Vec<(Reply, Spent)>>;

    /// The outcomes of a step are written down.
    fn finish(&mut self, step: Step) -> Result<()>;
}

/// Replays the code as built of all regions. Why regions cannot be tuned, by their indices.
pub fn begin(crew: &mut dyn Crew, targets: &[Target]) -> Result<BTreeMap<usize, Error>> {
    let work = Work::AsBuilt;
    let task = |region| Task {
        region,
        work: work.clone(),
    };
    let tasks: Vec<Task> = (0..targets.len()).map(task).collect();
    let replies = crew.run(Step::Begin, &tasks, &Codes::new())?;
    let failed = |(task, (reply, _)): (&Task, (Reply, _))| Some((task.region, reply.err()?));
    Ok(tasks.iter().zip(replies).filter_map(failed).collect())
}

/// Evaluates variants until the budget is used up or all searches have ended.
pub fn go_on(
    events: &Events,
    crew: &mut dyn Crew,
    courses: &mut [Course],
    left: &mut Left,
    wanted: Option<f64>,
    size: usize,
) -> Result<()> {
    let begun = crew.begun(Step::Search)?;
    let open = |task: &Task| match &task.work {
        Work::Evaluate { number, variant } => {
            let of = courses.iter().find(|c| c.place == task.region);
            of.is_some_and(|course| course.awaits(*number, variant))
        }
        _ => false,
    };
    let mut batch = match begun.iter().any(open) {
        true => begun,
        false => Vec::new(),
    };
    loop {
        if batch.is_empty() {
            check_target(events, crew, courses, wanted)?;
            batch = next_batch(courses, left, size)?;
        }
        if batch.is_empty() {
            break;
        }
        let codes = courses.iter().map(|c| (c.place, c.target.codes()));
        let replies = crew.run(Step::Search, &batch, &codes.collect())?;
        for (task, (reply, spent)) in batch.iter().zip(replies) {
            let course = course_of(courses, task)?;
            course.found.spent += spent;
            let Work::Evaluate { number, variant } = &task.work else {
                continue;
            };
            // A call that was killed while it wrote outcomes down has written some of them.
            if !course.awaits(*number, variant) {
                continue;
            }
            match reply {
                Ok(Done::Told(told)) => course.settle(*number, told)?,
                Ok(_) => bail!(E9001, "a worker did something else than variant {number}"),
                Err(why) => return Err(why.context(course.target.name.clone())),
            }
        }
        crew.finish(Step::Search)?;
        batch.clear();
    }
    Ok(())
}

/// The next proposals, and those of an earlier call that have no outcome; those of a region together.
fn next_batch(courses: &mut [Course], left: &mut Left, size: usize) -> Result<Vec<Task>> {
    let weights: Vec<f64> = courses.iter().map(|c| c.weight()).collect();
    let taken: Vec<u64> = courses.iter().map(|c| c.proposed()).collect();
    let mut turns = Turns::after(&weights, &taken);
    let mut batch = Vec::new();
    for course in courses.iter() {
        for number in &course.pending {
            batch.push((course.place, *number, course.variant(*number)));
        }
    }
    while batch.len() < size {
        let Some(place) = turns.next() else { break };
        match courses[place].take_turn(left)? {
            Turn::Proposed(number, variant) => batch.push((courses[place].place, number, variant)),
            Turn::Waits | Turn::Ended => turns.done(place),
            Turn::NoBudget => break,
        }
    }
    batch.sort_by_key(|(region, number, _)| (*region, *number));
    let task = |(region, number, variant)| Task {
        region,
        work: Work::Evaluate { number, variant },
    };
    Ok(batch.into_iter().map(task).collect())
}

/// Ends the searches whose best variant reaches the target when it is measured again.
fn check_target(
    events: &Events,
    crew: &mut dyn Crew,
    courses: &mut [Course],
    wanted: Option<f64>,
) -> Result<()> {
    let promising = |course: &Course| {
        let (variant, wanted) = course.promising(wanted)?;
        let work = Work::Reach { variant, wanted };
        Some(Task {
            region: course.place,
            work,
        })
    };
    let running = courses.iter().filter(|course| course.found.ended.is_none());
    let tasks: Vec<Task> = running.filter_map(promising).collect();
    if tasks.is_empty() {
        return Ok(());
    }
    let replies = crew.run(Step::Reach, &tasks, &Codes::new())?;
    for (task, (reply, spent)) in tasks.iter().zip(replies) {
        let course = course_of(courses, task)?;
        course.found.spent += spent;
        match reply {
            Ok(Done::Reached(true)) => course.found.ended = Some(TARGET_REACHED),
            Ok(_) => {}
            Err(why) => events.note(format!("{}: {why}", course.target.name)),
        }
    }
    crew.finish(Step::Reach)
}

fn course_of<'c, 'a>(courses: &'c mut [Course<'a>], task: &Task) -> Result<&'c mut Course<'a>> {
    let mut all = courses.iter_mut();
    let missing = || anyhow!(E9001, "a job is of a region that is not tuned");
    all.find(|c| c.place == task.region).ok_or_else(missing)
}
