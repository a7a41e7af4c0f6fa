//! Measures the winner again in turns with the code as built, before it is accepted.

use super::arms::{Arm, Arms, ratios};
use super::fewest::{self, Fewest};
use super::found::{Failure, Winner};
use crate::Variant;
use anyhow::{Error, Result, bail};
use cere_measure::decide::{Answer, Rule};
use cere_measure::{Builds, Measure, Member, Target, Turns};
use cere_replay::Team;
use cere_timing::stats::{Gain, race};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Maximum candidates of the race: the best of many variants that were timed once are partly lucky.
const FIELD: usize = 12;
/// Maximum replays for each candidate of the race.
const REPLAYS: f64 = 6.0;
/// Maximum finalists, which are measured again after the race.
pub const FINALISTS: usize = 4;

/// What is measured again when the search of a region has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Again {
    /// Variants that were faster, the best first.
    pub candidates: Vec<Variant>,
    /// Numbers of threads to try with the winner; empty unless the region is parallel.
    pub threads: Vec<u32>,
    /// Longest time for the candidates.
    pub most: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The confirmed variant, if any.
    pub winner: Option<Winner>,
    /// Whether the time was over before a decision.
    pub hurried: bool,
    /// Candidates with a wrong result.
    pub wrong: Vec<Failure>,
    /// A number of threads that is faster than that of the capture, with the gain.
    pub threads: Option<(u32, Gain)>,
}

impl Again {
    /// Measures it.
    ///
    /// # Errors
    /// The code as built cannot be replayed any more.
    pub fn decide(&self, lab: &dyn Measure, target: &Target, default: &Builds) -> Result<Decision> {
        let mut wrong = Vec::new();
        let Confirmed { winner, hurried } = confirm(
            lab,
            target,
            default,
            &self.candidates,
            self.most,
            &mut wrong,
        )?;
        let threads = match self.threads.is_empty() {
            true => None,
            false => {
                let variant = winner.as_ref().map(|w| w.variant.clone());
                threads(lab, target, &variant.unwrap_or_default(), &self.threads)?
            }
        };
        Ok(Decision {
            winner,
            hurried,
            wrong,
            threads,
        })
    }
}

struct Confirmed {
    winner: Option<Winner>,
    hurried: bool,
}

fn failure(variant: &Variant, reason: String) -> Failure {
    Failure {
        variant: variant.clone(),
        reason,
        same: false,
    }
}

/// The finalists of so many arms, the best first. Arms that fail leave the race.
fn run_race(turns: &mut Turns<Arms>, arms: usize) -> Result<Vec<usize>> {
    let found = race(arms, FINALISTS, |running| {
        let some: Vec<usize> = running.iter().map(|place| place + 1).collect();
        turns.round(&some)?;
        let last = |arm: &usize| match turns.failure(*arm) {
            Some(_) => None,
            None => ratios(turns, *arm).last().copied(),
        };
        Ok::<_, Error>(some.iter().map(last).collect())
    })?;
    Ok(found.into_iter().map(|place| place + 1).collect())
}

/// The first of `candidates` (in the order of the search, the best first) that is surely faster than `default` and has a
/// right result, within the time `most`. A race decides the order of the first ones. Candidates with a wrong result go to
/// `wrong`.
fn confirm(
    lab: &dyn Measure,
    target: &Target,
    default: &Builds,
    candidates: &[Variant],
    most: Duration,
    wrong: &mut Vec<Failure>,
) -> Result<Confirmed> {
    let start = Instant::now();
    let none = |hurried| Confirmed {
        winner: None,
        hurried,
    };
    if candidates.is_empty() {
        return Ok(none(false));
    }
    let as_built = || Arm::of(&Variant::default(), default);
    let mut first = Arms::turns(lab, target, vec![as_built()]);
    first.round(&[])?;
    // The race gets half of the time, the finalists the other half.
    let fitting = most.as_secs_f64() / 2.0 / (REPLAYS * first.bench.wall);
    let field = (fitting as usize).clamp(FINALISTS, FIELD);
    let mut builds = Vec::new();
    for variant in candidates.iter().take(field) {
        match lab.build(target, variant) {
            Ok(built) => builds.push((variant, built)),
            Err(why) => wrong.push(failure(variant, why)),
        }
    }
    let arms = || {
        let others = builds.iter().map(|(v, b)| Arm::of(v, b));
        std::iter::once(as_built()).chain(others).collect()
    };
    let mut race = Arms::turns(lab, target, arms());
    let raced = builds.len() > 1 && fitting >= FINALISTS as f64;
    let mut order: Vec<usize> = match raced {
        true => run_race(&mut race, builds.len())?,
        false => (1..=builds.len()).collect(),
    };
    order.truncate(FINALISTS);
    // The times that chose them are biased: they are not used again.
    let mut turns = Arms::turns(lab, target, arms());
    turns.bench.judged = race.bench.judged.clone();
    let rule = Rule::for_rivals();
    let mut decided = none(false);
    'finalists: for arm in order {
        loop {
            if start.elapsed() > most {
                decided = none(true);
                break 'finalists;
            }
            turns.round(&[arm])?;
            if turns.failure(arm).is_some() {
                break;
            }
            match rule.look(&ratios(&turns, arm)) {
                Answer::Faster(gain) => {
                    let (variant, built) = &builds[arm - 1];
                    let winner = Winner {
                        variant: (*variant).clone(),
                        gain,
                        searched: None,
                        effects: Vec::new(),
                    };
                    let fewest = Fewest {
                        lab,
                        target,
                        default,
                        until: fewest::until(start, most),
                    };
                    decided.winner = Some(fewest.of(winner, &built.code)?);
                    break 'finalists;
                }
                Answer::NotFaster(_) => break,
                Answer::Open => {}
            }
        }
    }
    for (place, (variant, _)) in builds.iter().enumerate() {
        let why = race.failure(place + 1).or(turns.failure(place + 1));
        wrong.extend(why.map(|why| failure(variant, why.to_owned())));
    }
    Ok(decided)
}

/// The number of threads with which the region is surely faster than with as many as at capture, with the gain.
pub fn threads(
    lab: &dyn Measure,
    target: &Target,
    variant: &Variant,
    counts: &[u32],
) -> Result<Option<(u32, Gain)>> {
    let captured = |m: &Member| m.manifest.openmp.as_ref().map(|o| o.threads);
    let Some(own) = target.members.iter().find_map(captured) else {
        return Ok(None);
    };
    let builds = lab.build(target, variant).map_err(Error::msg)?;
    let arm = |n: u32| Arm {
        variant: variant.clone(),
        builds: &builds,
        team: Some(Team {
            threads: Some(n),
            ..lab.team().clone()
        }),
    };
    let others: Vec<u32> = counts.iter().copied().filter(|n| *n != own).collect();
    let all = std::iter::once(own).chain(others.iter().copied());
    let mut turns = Arms::turns(lab, target, all.map(arm).collect());
    let rule = Rule::for_rivals();
    let mut open: Vec<usize> = (1..=others.len()).collect();
    let mut faster: Vec<(u32, Gain)> = Vec::new();
    while !open.is_empty() {
        turns.round(&open)?;
        for arm in std::mem::take(&mut open) {
            if let Some(why) = turns.failure(arm) {
                bail!("{why}");
            }
            match rule.look(&ratios(&turns, arm)) {
                Answer::Faster(gain) => faster.push((others[arm - 1], gain)),
                Answer::NotFaster(_) => {}
                Answer::Open => open.push(arm),
            }
        }
    }
    Ok(faster
        .into_iter()
        .min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)))
}
