//! Two codes that do the same work, on codelets of their own or on the same ones: verdicts, and times in turns.

use crate::decide::{Answer, Rule};
use crate::{Bench, Effort, Member, Turns, fast_seconds};
use anyhow::Result;
use cere_format::replay::Verdict;
use cere_replay::{Built, EditedUnit, Options, Replay, ReplayError};
use cere_timing::stats::{Gain, gain, median};
use std::time::Instant;

/// A codelet's code on one side.
pub struct Part<'m> {
    /// The codelet.
    pub member: &'m Member,
    /// What makes its code, and runs it.
    pub options: Options,
    built: Built,
}

impl Part<'_> {
    /// Invocations that it stands for.
    fn invocations(&self) -> f64 {
        let represented = self
            .member
            .manifest
            .represents
            .map(|r| r.invocations.max(1));
        represented.unwrap_or(1) as f64
    }

    /// A replay; `judged`: it is found out whether what differs is rounding.
    pub fn replay(&self, judged: bool) -> Result<Replay, ReplayError> {
        let (package, manifest) = (&self.member.package, &self.member.manifest);
        let mut replay = cere_replay::run::run(package, manifest, &self.built, &self.options)?;
        if judged {
            cere_replay::judge(package, manifest, &self.built, &mut replay, &self.options)?;
        }
        Ok(replay)
    }
}

/// The codelets of a region with one code.
pub struct Side<'m> {
    /// One a codelet.
    pub parts: Vec<Part<'m>>,
    /// Identifies their machine code.
    code: Vec<String>,
}

/// What a side leaves in memory.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The worst verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// What people should know.
    pub notes: Vec<String>,
}

impl<'m> Side<'m> {
    /// `members` with the units of `edited`, which has as many entries, in the place of the packages' own.
    pub fn build(
        members: &'m [Member],
        edited: Vec<Vec<EditedUnit>>,
        options: &Options,
    ) -> Result<Self, ReplayError> {
        let (mut parts, mut code) = (Vec::new(), Vec::new());
        for (member, edited) in members.iter().zip(edited) {
            let options = Options {
                edited,
                ..options.clone()
            };
            let (package, manifest) = (&member.package, &member.manifest);
            let objects = cere_replay::compile(package, manifest, &options)?;
            code.push(objects.code()?);
            let built = objects.link(package, manifest, &options)?;
            parts.push(Part {
                member,
                options,
                built,
            });
        }
        Ok(Self { parts, code })
    }

    /// Whether the machine code of both is the same, so that no time can differ.
    pub fn is_same_code(&self, other: &Self) -> bool {
        self.code == other.code
    }

    /// Replays each codelet once and compares what it leaves.
    pub fn judge(&self) -> Result<Judged, ReplayError> {
        let mut found: Option<Judged> = None;
        let mut notes: Vec<String> = Vec::new();
        for part in &self.parts {
            let replay = part.replay(true)?;
            notes.extend(replay.notes);
            if found
                .as_ref()
                .is_none_or(|worst| replay.verdict.is_worse_than(worst.verdict))
            {
                found = Some(Judged {
                    verdict: replay.verdict,
                    reason: match self.parts.len() {
                        1 => replay.reason,
                        _ => format!("{}: {}", part.member.manifest.name, replay.reason),
                    },
                    notes: Vec::new(),
                });
            }
        }
        notes.sort();
        notes.dedup();
        let found = found.ok_or_else(|| ReplayError::Hostile("it holds no codelets".into()))?;
        Ok(Judged { notes, ..found })
    }

    /// Seconds of each codelet, by the invocations that it stands for.
    fn seconds(&self) -> Result<Vec<f64>, ReplayError> {
        let each = self.parts.iter();
        each.map(|part| Ok(part.invocations() * fast_seconds(&part.replay(false)?)))
            .collect()
    }
}

/// The sides that are timed: the first one is timed before and after the other.
struct Both<'a> {
    sides: [&'a Side<'a>; 2],
    /// Whether both run the same codelets, so that one that is too short on a side is left out on both.
    paired: bool,
}

impl Bench for Both<'_> {
    type Error = anyhow::Error;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>> {
        let seconds = match self.sides[subject].seconds() {
            Ok(seconds) => seconds,
            Err(error) => return Ok(Err(cere_system::console::print::error(&error.into()))),
        };
        Ok(Ok(match self.paired {
            true => seconds,
            false => vec![seconds.iter().sum()],
        }))
    }
}

/// A comparison in time of a side with another one, the base.
pub struct Race<'a> {
    turns: Turns<Both<'a>>,
}

impl<'a> Race<'a> {
    /// `now` against `base`, without samples.
    pub fn new(base: &'a Side<'a>, now: &'a Side<'a>) -> Self {
        let packages = |side: &'a Side<'a>| side.parts.iter().map(|part| &part.member.package);
        let both = Both {
            sides: [now, base],
            paired: packages(base).eq(packages(now)),
        };
        Self {
            turns: Turns::new(both, 1),
        }
    }

    /// Times both until `rule` decides whether the base is faster.
    pub fn is_slower(&mut self, rule: &Rule) -> Result<bool> {
        let mut rounds = 0;
        loop {
            self.round()?;
            rounds += 1;
            let first = rule.looks.first().copied().unwrap_or(1);
            if rounds < first.min(rule.first) {
                continue;
            }
            let ratios = self.ratios();
            if ratios.is_empty() {
                return Ok(false);
            }
            match rule.look(&ratios) {
                Answer::Faster(_) => return Ok(true),
                Answer::NotFaster(_) => return Ok(false),
                // Rounds without a time do not end it by their number.
                Answer::Open if rounds < 2 * rule.looks.last().copied().unwrap_or(1) => {}
                Answer::Open => return Ok(false),
            }
        }
    }

    /// Times both as long as `effort` says.
    pub fn time(&mut self, effort: Effort) -> Result<()> {
        let began = Instant::now();
        for round in 0..effort.most {
            if round >= effort.least && (effort.is_narrow(self.gain()) || effort.is_over(began)) {
                break;
            }
            self.round()?;
        }
        Ok(())
    }

    fn round(&mut self) -> Result<()> {
        self.turns.round(&[1])?;
        match self.turns.failure(1) {
            Some(why) => Err(anyhow::Error::msg(why.to_owned())),
            None => Ok(()),
        }
    }

    /// The base's time over that of the other side, of each round.
    fn ratios(&self) -> Vec<f64> {
        let ratio = |now: &[f64], base: &[f64]| {
            let each = now.iter().zip(base).filter(|(n, b)| **n > 0.0 && **b > 0.0);
            let (now, base) = each.fold((0.0, 0.0), |sum, (n, b)| (sum.0 + n, sum.1 + b));
            base / now
        };
        let ratios = self.turns.series().ratios(1, ratio).into_iter();
        ratios.filter(|r| r.is_finite() && *r > 0.0).collect()
    }

    /// Time of the side over that of the base; none if both are too short for the clock.
    pub fn gain(&self) -> Option<Gain> {
        let of_base = gain(&self.ratios())?;
        Some(Gain {
            ratio: 1.0 / of_base.ratio,
            low: 1.0 / of_base.high,
            high: 1.0 / of_base.low,
            level: of_base.level,
        })
    }

    /// Median seconds of the base and of the side: of all codelets, each by the invocations that it stands for.
    pub fn seconds(&self) -> [Option<f64>; 2] {
        [1, 0].map(|subject| {
            let side = self.turns.bench.sides[subject];
            let parts = if self.turns.bench.paired {
                side.parts.len()
            } else {
                1
            };
            let medians = (0..parts).map(|part| median(&self.turns.series().times(subject, part)));
            let known: Vec<f64> = medians.flatten().collect();
            (!known.is_empty()).then(|| known.iter().sum())
        })
    }
}

/// The units of `members` as the packages have them, without an edit.
pub fn as_packaged(members: &[Member]) -> Vec<Vec<EditedUnit>> {
    members.iter().map(|_| Vec::new()).collect()
}
