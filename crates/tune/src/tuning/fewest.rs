//! The fewest flags that do what a winner does: delta debugging (Zeller and Hildebrandt, 2002) on machine code, which costs no run,
//! then on time.

use super::arms::{Arm, Arms, ratios};
use super::found::Winner;
use super::minimise::minimise;
use crate::{Pipeline, Variant};
use anyhow::Result;
use cere_measure::decide::{Answer, Rule};
use cere_measure::{Builds, Measure, Target};
use cere_timing::stats::gain_with;
use std::time::{Duration, Instant};

/// Reduces the winner of a region.
pub struct Fewest<'a> {
    /// Where variants are built and timed.
    pub lab: &'a dyn Measure,
    /// The region.
    pub target: &'a Target,
    /// The code as built.
    pub default: &'a Builds,
    /// When to stop.
    pub until: Option<Instant>,
}

impl Fewest<'_> {
    /// The winner, whose machine code is `code`, with the fewest flags.
    ///
    /// # Errors
    /// The code as built cannot be replayed any more.
    pub fn of(&self, winner: Winner, code: &str) -> Result<Winner> {
        self.target.learn(code.to_owned(), Some(winner.gain.ratio));
        let same = Winner {
            variant: self.by_code(&winner.variant, code),
            ..winner.clone()
        };
        let least = self.by_time(&same)?;
        Ok(Winner {
            searched: (least.variant != winner.variant).then_some(winner.variant),
            ..least
        })
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Whether `variant` has the machine code `code` in all codelets.
    fn has_code(&self, variant: &Variant, code: &str) -> bool {
        // What has this code is not linked: its outcome is known.
        let built = self.lab.build_new(self.target, variant);
        built.is_ok_and(|built| built.code == code)
    }

    /// The variant without what does not change its machine code, `code`, as far as a few seconds of compiling show.
    pub fn by_code(&self, variant: &Variant, code: &str) -> Variant {
        let begin = Instant::now();
        let has_code =
            |variant: &Variant| begin.elapsed() < COMPILING && self.has_code(variant, code);
        let mut least = variant.clone();
        let plain = Variant {
            passes: None,
            ..least.clone()
        };
        if least.passes.is_some() && has_code(&plain) {
            least = plain;
        }
        let with = |least: &Variant, parts: &[Vec<String>]| Variant {
            flags: parts.concat(),
            ..least.clone()
        };
        let parts = minimise(least.choices(), |parts| has_code(&with(&least, parts)));
        least = with(&least, &parts);
        let pipeline = least
            .passes
            .as_deref()
            .and_then(|text| Pipeline::parse(text).ok());
        if let Some(pipeline) = pipeline {
            let with = |kept: &[usize]| Variant {
                passes: Some(pipeline.keeping(|pass| kept.contains(&pass))),
                ..least.clone()
            };
            let all = (0..pipeline.passes()).collect();
            let kept = minimise(all, |kept| has_code(&with(kept)));
            least = with(&kept);
        }
        least
    }

    /// The winner without the flags whose loss costs no more than `slack` of its time, for as long as there is time; with its gain over the
    /// code as built.
    ///
    /// # Errors
    /// The code as built cannot be replayed any more.
    pub fn by_time(&self, winner: &Winner) -> Result<Winner> {
        let slack = SLACK.max((1.0 - winner.gain.ratio) * PART_OF_GAIN);
        let (lab, target) = (self.lab, self.target);
        let mut parts = winner.variant.choices();
        let mut least = winner.variant.clone();
        let mut at = 0;
        while parts.len() > 1 && at < parts.len() && !self.is_over() {
            let mut fewer = parts.clone();
            fewer.remove(at);
            let without = Variant {
                flags: fewer.concat(),
                ..least.clone()
            };
            match self.is_as_fast(&least, &without, slack)? {
                true => (parts, least) = (fewer, without),
                false => at += 1,
            }
        }
        if least == winner.variant {
            return Ok(winner.clone());
        }
        // Losses that were too small to see add up.
        let Ok(built) = lab.build(target, &least) else {
            return Ok(winner.clone());
        };
        let as_built = Arm::of(&Variant::default(), self.default);
        let mut turns = Arms::turns(lab, target, vec![as_built, Arm::of(&least, &built)]);
        let answer = turns.decide(&[1], &Rule::for_rivals(), |_| {})?;
        Ok(match answer {
            Answer::Faster(gain) if gain.ratio <= winner.gain.ratio + slack => Winner {
                variant: least,
                gain,
                ..winner.clone()
            },
            _ => winner.clone(),
        })
    }

    /// Whether `without` surely takes no more than `1 + slack` of the time of `with`, and has a right result.
    fn is_as_fast(&self, with: &Variant, without: &Variant, slack: f64) -> Result<bool> {
        let (lab, target) = (self.lab, self.target);
        let built = |variant| lab.build(target, variant);
        let (Ok(with_built), Ok(without_built)) = (built(with), built(without)) else {
            return Ok(false);
        };
        let arms = vec![Arm::of(with, &with_built), Arm::of(without, &without_built)];
        let mut turns = Arms::turns(lab, target, arms);
        for round in 1..=ROUNDS[ROUNDS.len() - 1] {
            turns.round(&[1])?;
            if turns.failure(1).is_some() || self.is_over() {
                return Ok(false);
            }
            if !ROUNDS.contains(&round) {
                continue;
            }
            match gain_with(&ratios(&turns, 1), LEVEL) {
                Some(found) if found.high <= 1.0 + slack => return Ok(true),
                Some(found) if found.low > 1.0 || found.ratio > 1.0 + slack => return Ok(false),
                _ => {}
            }
        }
        Ok(false)
    }
}

/// Share of the time that a flag has to save to stay.
const SLACK: f64 = 0.005;
/// The same, of what all flags save.
const PART_OF_GAIN: f64 = 0.1;
/// Numbers of rounds after which a flag's saving is looked at.
const ROUNDS: [usize; 3] = [7, 11, 15];
/// Probability with which the interval of each look holds the truth.
const LEVEL: f64 = 0.97;

/// Until when a winner that was confirmed in the time since `start`, of `most`, is reduced: as long again.
pub fn until(start: Instant, most: Duration) -> Option<Instant> {
    let end = start.checked_add(most);
    let again = Instant::now().checked_add(start.elapsed().max(LEAST));
    match (end, again) {
        (Some(end), Some(again)) => Some(end.min(again)),
        (end, again) => end.or(again),
    }
}

/// Time for what costs compiles alone.
const COMPILING: Duration = Duration::from_secs(3);
/// Time that reducing gets in any case but for a budget that is over.
const LEAST: Duration = Duration::from_secs(3);
