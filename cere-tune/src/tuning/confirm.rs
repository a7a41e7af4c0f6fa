//! The winner measured again against the code as built, in alternation, before it is believed.

use super::course::Failure;
use crate::Variant;
use anyhow::Result;
use cere_measure::decide::{Answer, Rule};
use cere_measure::{Bench, Builds, Measure, Member, Target, Turns};
use cere_replay::Team;
use cere_stats::{Gain, race};
use std::time::{Duration, Instant};

/// Candidates that race for their places, at most: the best of many that were timed once owe that to luck.
const FIELD: usize = 12;
/// Replays of a race for each that races, at most.
const REPLAYS: f64 = 6.0;
/// Those of them that are measured by themselves, at most.
pub const FINALISTS: usize = 4;
/// Arms that are timed between two timings of the code as built.
const PAIR: usize = 2;

/// A variant that is believed.
#[derive(Debug, Clone)]
pub struct Winner {
    /// It.
    pub variant: Variant,
    /// Its time over that of the code as built, with the interval that holds it with 95 %.
    pub gain: Gain,
}

/// A variant with a team.
pub struct Arm<'b> {
    /// What is replayed.
    pub variant: Variant,
    /// Its builds.
    pub builds: &'b Builds,
    /// Its team, if not that of the capture.
    pub team: Option<Team>,
}

impl<'b> Arm<'b> {
    /// With the team of the capture.
    pub fn of(variant: &Variant, builds: &'b Builds) -> Self {
        Self {
            variant: variant.clone(),
            builds,
            team: None,
        }
    }
}

/// Arms of one region; the first one is the baseline.
pub struct Arms<'t, 'b> {
    lab: &'t dyn Measure,
    target: &'t Target,
    arms: Vec<Arm<'b>>,
    /// Whether the results of an arm were judged: they may be other ones by rounding, which is looked at once.
    judged: Vec<bool>,
    /// Seconds that the longest timing took, with start and restoring.
    wall: f64,
}

impl<'t, 'b> Arms<'t, 'b> {
    /// Arms to be timed in turns, the baseline first.
    pub fn turns(lab: &'t dyn Measure, target: &'t Target, arms: Vec<Arm<'b>>) -> Turns<Self> {
        let judged = vec![false; arms.len()];
        let arms = Self {
            lab,
            target,
            arms,
            judged,
            wall: 0.0,
        };
        Turns::new(arms, PAIR)
    }
}

impl Bench for Arms<'_, '_> {
    type Error = String;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>, String> {
        let arm = &self.arms[subject];
        let judged = !std::mem::replace(&mut self.judged[subject], true);
        let team = arm.team.as_ref();
        let timed = self
            .lab
            .time(self.target, &arm.variant, arm.builds, judged, team);
        Ok(timed.map(|timed| {
            self.wall = self.wall.max(timed.wall);
            timed.seconds
        }))
    }
}

/// Times of an arm over those of the baseline, in the order of the rounds.
pub fn ratios(turns: &Turns<Arms>, arm: usize) -> Vec<f64> {
    let target = turns.bench.target;
    turns
        .series()
        .ratios(arm, |base, now| target.ratio(base, now))
}

/// What came of measuring again.
pub struct Confirmed {
    /// The variant that is believed.
    pub winner: Option<Winner>,
    /// Whether the time was over before it was sure that the best is the best.
    pub hurried: bool,
}

fn failure(variant: &Variant, reason: String) -> Failure {
    Failure {
        variant: variant.clone(),
        reason,
        same: false,
    }
}

/// The finalists among so many arms, the best first. Those that cannot be used leave the race.
fn ranked(turns: &mut Turns<Arms>, arms: usize) -> Result<Vec<usize>, String> {
    let found = race(arms, FINALISTS, |running| {
        let some: Vec<usize> = running.iter().map(|place| place + 1).collect();
        turns.round(&some)?;
        let last = |arm: &usize| match turns.failure(*arm) {
            Some(_) => None,
            None => ratios(turns, *arm).last().copied(),
        };
        Ok::<_, String>(some.iter().map(last).collect())
    })?;
    Ok(found.into_iter().map(|place| place + 1).collect())
}

/// The first of `candidates`, those that seem the best first, that is surely faster than `default` and whose result is right, if
/// `most`, the time for it, suffices; the order among the first is that of a race. Those whose result is not right go to `wrong`.
pub fn confirm(
    lab: &dyn Measure,
    target: &Target,
    default: &Builds,
    candidates: &[Variant],
    most: Duration,
    wrong: &mut Vec<Failure>,
) -> Result<Confirmed, String> {
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
    // Half of the time is for the finalists.
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
        true => ranked(&mut race, builds.len())?,
        false => (1..=builds.len()).collect(),
    };
    order.truncate(FINALISTS);
    // What chose them is no measure of them.
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
                    decided.winner = Some(Winner {
                        variant: builds[arm - 1].0.clone(),
                        gain,
                    });
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

/// The number of threads with which the region is surely faster than with as many as at capture, and by how much, if there
/// is one.
pub fn threads(
    lab: &dyn Measure,
    target: &Target,
    variant: &Variant,
    counts: &[u32],
) -> Result<Option<(u32, Gain)>, String> {
    let captured = |m: &Member| m.manifest.openmp.as_ref().map(|o| o.threads);
    let Some(own) = target.members.iter().find_map(captured) else {
        return Ok(None);
    };
    let builds = lab.build(target, variant)?;
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
                return Err(why.to_owned());
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
