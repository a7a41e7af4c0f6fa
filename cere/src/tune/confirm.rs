//! The winner measured again against the code as built, in alternation, before it is believed.

use super::course::Failure;
use super::lab::{Builds, Lab};
use super::target::Target;
use anyhow::Result;
use cere_replay::Team;
use cere_tune::{Gain, Variant, gain};
use std::time::{Duration, Instant};

/// Pairs of timings: first some, which most of those that owe their place to luck do not survive, then more.
const FIRST: usize = 3;
const ROUNDS: usize = 7;
/// Candidates that are measured again, at most.
const CANDIDATES: usize = 4;
/// A variant has to be faster by this share at least, with 95 % confidence.
const SURE: f64 = 0.002;

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

/// Times of the region as the sum over its classes, in those of the first timing of all, which `base` keeps for more; `rounds`
/// of each arm in turn. An error tells why an arm, by its place, cannot be used.
pub fn alternate(
    lab: &Lab,
    target: &Target,
    arms: &[Arm],
    rounds: usize,
    base: &mut Option<Vec<f64>>,
) -> Result<Vec<Vec<f64>>, (usize, String)> {
    let mut times = vec![Vec::new(); arms.len()];
    let fresh = base.is_none();
    for round in 0..rounds {
        for (place, arm) in arms.iter().enumerate() {
            let judged = fresh && round == 0;
            let team = arm.team.as_ref();
            let timed = lab
                .time(target, &arm.variant, arm.builds, judged, team)
                .map_err(|why| (place, why))?;
            let base = base.get_or_insert_with(|| timed.seconds.clone());
            times[place].push(target.ratio(base, &timed.seconds));
        }
    }
    Ok(times)
}

/// What came of measuring again.
pub struct Confirmed {
    /// The variant that is believed.
    pub winner: Option<Winner>,
    /// Whether the time was over before it was sure that the best is the best.
    pub hurried: bool,
}

/// The first of `candidates`, the best first, that is surely faster than `default` and whose result is right, if `most`,
/// the time for it, suffices. Those whose result is not go to `wrong`.
pub fn confirm(
    lab: &Lab,
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
    let failure = |variant: &Variant, reason| Failure {
        variant: variant.clone(),
        reason,
        same: false,
    };
    for variant in candidates.iter().take(CANDIDATES) {
        let builds = match lab.build(target, variant) {
            Ok(builds) => builds,
            Err(why) => {
                wrong.push(failure(variant, why));
                continue;
            }
        };
        let arms = [
            Arm::of(&Variant::default(), default),
            Arm::of(variant, &builds),
        ];
        let mut times = vec![Vec::new(); arms.len()];
        let mut base = None;
        for round in 1..=ROUNDS {
            if start.elapsed() > most {
                return Ok(none(true));
            }
            match alternate(lab, target, &arms, 1, &mut base) {
                Err((1, why)) => {
                    wrong.push(failure(variant, why));
                    break;
                }
                Err((_, why)) => return Err(why),
                Ok(more) => times
                    .iter_mut()
                    .zip(more)
                    .for_each(|(all, more)| all.extend(more)),
            }
            if round != FIRST && round != ROUNDS {
                continue;
            }
            let found = gain(&times[0], &times[1], 1);
            match found {
                Some(found) if found.ratio > 1.0 - SURE => break,
                Some(found) if round == ROUNDS && found.high < 1.0 - SURE => {
                    return Ok(Confirmed {
                        winner: Some(Winner {
                            variant: variant.clone(),
                            gain: found,
                        }),
                        hurried: false,
                    });
                }
                _ => {}
            }
        }
    }
    Ok(none(false))
}

/// The number of threads with which the region is surely faster than with as many as at capture, and by how much, if there
/// is one.
pub fn threads(
    lab: &Lab,
    target: &Target,
    variant: &Variant,
    counts: &[u32],
) -> Result<Option<(u32, Gain)>, String> {
    let captured = |m: &super::target::Member| m.manifest.openmp.as_ref().map(|o| o.threads);
    let Some(own) = target.members.iter().find_map(captured) else {
        return Ok(None);
    };
    let builds = lab.build(target, variant)?;
    let mut all = vec![own];
    all.extend(counts.iter().copied().filter(|n| *n != own));
    let arms: Vec<Arm> = all
        .iter()
        .map(|n| Arm {
            variant: variant.clone(),
            builds: &builds,
            team: Some(Team {
                threads: Some(*n),
                ..lab.request.team.clone()
            }),
        })
        .collect();
    let found = alternate(lab, target, &arms, ROUNDS, &mut None).map_err(|(_, why)| why)?;
    // The first is that of the capture.
    let sure = |(n, times): (&u32, &Vec<f64>)| {
        let gain = gain(&found[0], times, 1)?;
        (gain.high < 1.0 - SURE).then_some((*n, gain))
    };
    let others = all.iter().zip(&found).skip(1).filter_map(sure);
    Ok(others.min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)))
}
