//! The winner measured again against the code as built, in alternation, before it is believed.

use super::course::Failure;
use crate::Variant;
use anyhow::Result;
use cere_measure::{Builds, Lab, Target, between};
use cere_replay::Team;
use cere_stats::{Gain, gain, race};
use std::time::{Duration, Instant};

/// Candidates that race for their places, at most: the best of many that were timed once owe that to luck.
const FIELD: usize = 12;
/// Replays of a race for each that races, at most.
const REPLAYS: f64 = 6.0;
/// Those of them that are measured by themselves, at most.
const FINALISTS: usize = 4;
/// Timings after which a finalist that shows no gain is given up.
const FIRST: usize = 3;
/// Timings after each of which one whose gain is sure is believed, and given up if it would not be after the last.
const LOOKS: [usize; 3] = [7, 14, 21];
/// A variant has to be faster by this share at least, with 95 % confidence.
const SURE: f64 = 0.002;
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

/// Arms that are timed in turns with another one, the code as built.
pub struct Alternation<'t, 'b> {
    lab: &'t Lab<'t>,
    target: &'t Target,
    base: Arm<'b>,
    /// What `base` took when it was timed last.
    before: Vec<f64>,
    /// Seconds that a timing of it takes, with start and restoring.
    pub wall: f64,
}

impl<'t, 'b> Alternation<'t, 'b> {
    /// Times `base` for the first time.
    pub fn begin(lab: &'t Lab<'t>, target: &'t Target, base: Arm<'b>) -> Result<Self, String> {
        let timed = lab.time(target, &base.variant, base.builds, true, base.team.as_ref())?;
        Ok(Self {
            lab,
            target,
            base,
            before: timed.seconds,
            wall: timed.wall,
        })
    }

    /// The times of `arms` over those of the code as built, which is timed before and after every [`PAIR`] of them, or why one
    /// cannot be used. `judged`: whether their results may be other ones by rounding, which is looked at then. The error
    /// tells why the code as built cannot be timed.
    pub fn once(
        &mut self,
        arms: &[&Arm],
        judged: bool,
    ) -> Result<Vec<Result<f64, String>>, String> {
        let (lab, target) = (self.lab, self.target);
        let time = |arm: &Arm, judged| {
            let team = arm.team.as_ref();
            lab.time(target, &arm.variant, arm.builds, judged, team)
        };
        let mut ratios = Vec::new();
        for some in arms.chunks(PAIR) {
            let timed: Vec<_> = some.iter().map(|arm| time(arm, judged)).collect();
            let after = time(&self.base, false)?.seconds;
            let base = between(&self.before, &after, 0.5);
            let ratio = |timed: cere_measure::Timed| target.ratio(&base, &timed.seconds);
            ratios.extend(timed.into_iter().map(|timed| timed.map(ratio)));
            self.before = after;
        }
        Ok(ratios)
    }
}

/// What the timings of a finalist say.
#[derive(Debug, PartialEq)]
enum Look {
    /// It is faster.
    Sure(Gain),
    /// More of them would not show that it is.
    Hopeless,
    /// More are needed.
    Open,
}

fn look(ratios: &[f64]) -> Look {
    let count = ratios.len();
    let last = LOOKS[LOOKS.len() - 1];
    let looks = LOOKS.contains(&count);
    if count != FIRST && !looks {
        return Look::Open;
    }
    let Some(found) = gain(ratios) else {
        return Look::Hopeless;
    };
    let faster = 1.0 - SURE;
    if looks && found.high < faster {
        return Look::Sure(found);
    }
    let hopeless = match looks {
        true => count == last || upper(ratios, last) > faster,
        false => found.ratio > faster,
    };
    match hopeless {
        true => Look::Hopeless,
        false => Look::Open,
    }
}

/// The upper end that the interval of `last` ratios like these would have: as large a part of them lies below it.
fn upper(ratios: &[f64], last: usize) -> f64 {
    let mut rising = ratios.to_vec();
    rising.sort_by(f64::total_cmp);
    let high = cere_stats::ranks(last, 0.95).map_or(last, |ranks| ranks.high);
    let rank = (high * rising.len()).div_ceil(last);
    rising.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
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

/// The places of the finalists among `arms`, the best first. Those that cannot be used go to `wrong`.
fn ranked(
    turns: &mut Alternation,
    arms: &[Arm],
    wrong: &mut Vec<Failure>,
) -> Result<Vec<usize>, String> {
    let mut first = true;
    race(arms.len(), FINALISTS, |running| {
        let some: Vec<&Arm> = running.iter().map(|place| &arms[*place]).collect();
        let told = turns.once(&some, std::mem::take(&mut first))?;
        let told = running.iter().zip(told).map(|(place, told)| {
            let why = |why| wrong.push(failure(&arms[*place].variant, why));
            told.map_err(why).ok()
        });
        Ok(told.collect())
    })
}

/// The first of `candidates`, those that seem the best first, that is surely faster than `default` and whose result is right, if
/// `most`, the time for it, suffices; the order among the first is that of a race. Those whose result is not right go to `wrong`.
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
    if candidates.is_empty() {
        return Ok(none(false));
    }
    let mut turns = Alternation::begin(lab, target, Arm::of(&Variant::default(), default))?;
    // Half of the time is for the finalists.
    let fitting = most.as_secs_f64() / 2.0 / (REPLAYS * turns.wall);
    let field = (fitting as usize).clamp(FINALISTS, FIELD);
    let mut builds = Vec::new();
    for variant in candidates.iter().take(field) {
        match lab.build(target, variant) {
            Ok(built) => builds.push((variant, built)),
            Err(why) => wrong.push(failure(variant, why)),
        }
    }
    let arms: Vec<Arm> = builds.iter().map(|(v, b)| Arm::of(v, b)).collect();
    let raced = arms.len() > 1 && fitting >= FINALISTS as f64;
    let order = match raced {
        true => ranked(&mut turns, &arms, wrong)?,
        false => (0..arms.len()).collect(),
    };
    for place in order {
        // What chose it is no measure of it.
        let arm = &arms[place];
        let mut ratios = Vec::new();
        loop {
            if start.elapsed() > most {
                return Ok(none(true));
            }
            match turns.once(&[arm], ratios.is_empty() && !raced)?.remove(0) {
                Ok(ratio) => ratios.push(ratio),
                Err(why) => {
                    wrong.push(failure(&arm.variant, why));
                    break;
                }
            }
            match look(&ratios) {
                Look::Sure(gain) => {
                    return Ok(Confirmed {
                        winner: Some(Winner {
                            variant: arm.variant.clone(),
                            gain,
                        }),
                        hurried: false,
                    });
                }
                Look::Hopeless => break,
                Look::Open => {}
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
    let captured = |m: &cere_measure::Member| m.manifest.openmp.as_ref().map(|o| o.threads);
    let Some(own) = target.members.iter().find_map(captured) else {
        return Ok(None);
    };
    let builds = lab.build(target, variant)?;
    let arm = |n: u32| Arm {
        variant: variant.clone(),
        builds: &builds,
        team: Some(Team {
            threads: Some(n),
            ..lab.request.team.clone()
        }),
    };
    let others: Vec<u32> = counts.iter().copied().filter(|n| *n != own).collect();
    let arms: Vec<Arm> = others.iter().map(|n| arm(*n)).collect();
    let all: Vec<&Arm> = arms.iter().collect();
    let mut turns = Alternation::begin(lab, target, arm(own))?;
    let mut ratios = vec![Vec::new(); arms.len()];
    for round in 0..LOOKS[0] {
        for (ratios, told) in ratios.iter_mut().zip(turns.once(&all, round == 0)?) {
            ratios.push(told?);
        }
    }
    let sure = |(n, ratios): (&u32, &Vec<f64>)| {
        let gain = gain(ratios)?;
        (gain.high < 1.0 - SURE).then_some((*n, gain))
    };
    let found = others.iter().zip(&ratios).filter_map(sure);
    Ok(found.min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ratios: &[f64], timings: usize) -> Look {
        let ratios: Vec<f64> = ratios.iter().copied().cycle().take(timings).collect();
        look(&ratios)
    }

    #[test]
    fn finalists() {
        let sure = |look| matches!(look, Look::Sure(_));
        // However clear it is, it takes some.
        assert_eq!(after(&[0.5], 6), Look::Open);
        assert!(sure(after(&[0.5], 7)));
        // No gain at first.
        assert_eq!(after(&[1.0], 3), Look::Hopeless);
        assert_eq!(after(&[1.0, 0.9, 1.1], 3), Look::Hopeless);
        // One disturbed timing of seven: the next ones tell.
        let disturbed = [0.9, 0.91, 0.89, 0.92, 0.9, 0.88, 1.1];
        assert_eq!(after(&disturbed, 3), Look::Open);
        assert_eq!(after(&disturbed, 7), Look::Open);
        assert!(sure(after(&disturbed, 14)));
        // So little that not even 21 of them would show it.
        let little = [0.97, 0.99, 1.2, 0.7, 1.2, 0.98, 0.96];
        assert_eq!(after(&little, 7), Look::Hopeless);
        let half = [0.93, 0.94, 0.95, 0.96, 0.93, 1.01];
        assert_ne!(after(&half, 21), Look::Open);
    }
}
