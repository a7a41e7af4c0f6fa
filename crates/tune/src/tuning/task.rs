//! What a search has done by other machines, and how a machine does it.

use super::ahead::Ahead;
use super::confirm::{Again, Decision};
use super::evaluator::Evaluator;
use super::journal::Told;
use super::spent::Spent;
use crate::Variant;
use anyhow::{Context, Result};
use cere_measure::{Measure, Target};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Work on one region, by its index among all that are tuned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The region.
    pub region: usize,
    /// The work.
    pub work: Work,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Replay the code as built.
    AsBuilt,
    /// Evaluate a proposal.
    Evaluate {
        /// Its number in the search.
        number: u64,
        /// It.
        variant: Variant,
    },
    /// Measure the best variant again: is it so many times faster?
    Reach {
        /// The variant.
        variant: Variant,
        /// The target.
        wanted: f64,
    },
    /// Measure the best variants again.
    Confirm(Again),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// The code as built has the right result.
    AsBuilt,
    /// The outcome of a proposal.
    Told(Told),
    /// Whether the target is reached.
    Reached(bool),
    /// What was confirmed.
    Decided(Decision),
}

/// Does `tasks`, all those of a chunk, on this machine: `keep` calls what it gets with each of them, in order. The code as
/// built of each region is replayed first, so ratios are of one machine. `targets` are the regions by their indices, with
/// the outcomes of machine code that are known.
///
/// # Errors
/// The code as built of a region cannot be replayed, though nothing but that was to be found out; those of `keep`.
pub fn perform<T>(
    lab: &dyn Measure,
    targets: &BTreeMap<usize, Target>,
    tasks: &[Task],
    jobs: usize,
    keep: impl FnOnce(&mut dyn FnMut(&Task) -> Result<(Done, Spent)>) -> Result<T>,
) -> Result<T> {
    let place = |region: usize| targets.keys().position(|key| *key == region);
    let list: Vec<&Target> = targets.values().collect();
    let mut evaluators = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.work != Work::AsBuilt) {
        if let (None, Some(target)) = (evaluators.get(&task.region), targets.get(&task.region)) {
            let evaluator = Evaluator::begin(lab, target)?;
            evaluators.insert(task.region, evaluator);
        }
    }
    Ahead::with(lab, &list, jobs, |ahead| {
        // Of the tasks that need a build, in order.
        let mut tickets = VecDeque::new();
        for task in tasks {
            if let (Work::Evaluate { variant, .. }, Some(place)) = (&task.work, place(task.region))
            {
                tickets.push_back(ahead.request_build(place, variant));
            }
        }
        keep(&mut |task| {
            let unknown = || format!("the job has no region {}", task.region);
            let target = targets.get(&task.region).with_context(unknown)?;
            if task.work == Work::AsBuilt {
                let evaluator = Evaluator::begin(lab, target)?;
                return Ok((Done::AsBuilt, evaluator.spent));
            }
            let evaluator = evaluators.get_mut(&task.region).with_context(unknown)?;
            let done = match &task.work {
                Work::AsBuilt => Done::AsBuilt,
                Work::Evaluate { variant, .. } => {
                    let ticket = tickets.pop_front().context("a task came twice")?;
                    let built = ahead.wait_for_build(ticket);
                    let told = evaluator.evaluate(lab, ahead, variant, built)?;
                    if let Some(code) = &told.code {
                        target.learn(code.clone(), told.ratio);
                    }
                    Done::Told(told)
                }
                Work::Reach { variant, wanted } => {
                    Done::Reached(evaluator.reaches(lab, ahead, variant, *wanted))
                }
                Work::Confirm(again) => Done::Decided(evaluator.decide(lab, again)?),
            };
            Ok((done, std::mem::take(&mut evaluator.spent)))
        })
    })
}
