//! The search of one region.

use super::ahead::Ahead;
use super::arms::{Arm, Arms, ratios};
use super::baseline::Baseline;
use super::journal::{Event, Journal, Told};
use crate::{Outcome, Search, Variant};
use anyhow::{Context, Result, anyhow};
use cere_measure::{Builds, Measure, Target, Timed};
use cere_stats::gain;
use std::collections::{HashMap, VecDeque};
use std::path::Path;

/// A variant whose first codelets take this many times longer than as built is not timed on the others.
const HOPELESS: f64 = 1.05;

/// Limit of a compile or a replay: this many times the time as built, and a minimum in seconds.
const SLOWER: f64 = 10.0;
const LEAST_LIMIT: f64 = 5.0;

/// Where the time of a search went, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Spent {
    /// Compiling and linking, all builders together.
    pub compiling: f64,
    /// Waiting for builds: for the next variant's, or for others to end before something is timed.
    pub waiting: f64,
    /// Starting replays, including their first runs, whose results are compared.
    pub starting: f64,
    /// Putting the captured state back.
    pub restoring: f64,
    /// Warming up.
    pub warming: f64,
    /// In timed repetitions.
    pub timed: f64,
}

/// A variant that failed.
pub struct Failure {
    /// The variant.
    pub variant: Variant,
    /// The reason.
    pub reason: String,
    /// Whether the failure was that of another variant with the same machine code.
    pub same: bool,
}

/// The search of one region.
pub struct Course<'a> {
    /// Index of the region among all that are tuned.
    pub place: usize,
    /// The region.
    pub target: &'a Target,
    search: Search,
    journal: Journal,
    /// The code as built.
    pub default: Builds,
    baseline: Baseline,
    open: HashMap<u64, Variant>,
    /// Variants that were measured, with their ratios.
    pub ranked: Vec<(f64, Variant)>,
    /// Outcomes.
    pub told: u64,
    /// Of those, outcomes of earlier searches.
    pub earlier: u64,
    /// Of those, variants that were not measured because another variant has the same machine code.
    pub same: u64,
    /// Variants that failed.
    pub failed: Vec<Failure>,
    /// Why the search ended.
    pub ended: Option<&'static str>,
    /// Where the time went.
    pub spent: Spent,
    /// Proposals of an earlier run without an outcome.
    pub pending: VecDeque<u64>,
}

impl<'a> Course<'a> {
    /// Starts a search, or continues the one recorded in the file at `path`.
    pub fn begin(
        lab: &dyn Measure,
        (place, target): (usize, &'a Target),
        search: Search,
        path: &Path,
    ) -> Result<Self> {
        let failed = |why: String| anyhow!("{} cannot be replayed as built: {why}", target.name);
        let variant = Variant::default();
        let default = lab.build(target, &variant).map_err(failed)?;
        let timed = lab
            .time(target, &variant, &default, true, None)
            .map_err(failed)?;
        // A compiler or code that hangs costs one evaluation.
        let limit = (default.seconds * SLOWER)
            .max(timed.wall * SLOWER)
            .max(LEAST_LIMIT);
        let _ = target.limit.set(limit);
        target.learn(default.code.clone(), Some(1.0));
        let (journal, events) = Journal::open(path)?;
        let mut course = Self {
            place,
            target,
            search,
            journal,
            default,
            baseline: Baseline::of(timed.seconds.clone()),
            open: HashMap::new(),
            ranked: Vec::new(),
            told: 0,
            earlier: 0,
            same: 0,
            failed: Vec::new(),
            ended: None,
            spent: Spent::default(),
            pending: VecDeque::new(),
        };
        course.spend(&timed);
        course.resume(events)?;
        Ok(course)
    }

    fn resume(&mut self, events: Vec<Event>) -> Result<()> {
        for event in events {
            match event {
                Event::Proposed(number, variant) => match self.search.propose() {
                    Some((n, v)) if n == number && v == variant => {
                        self.open.insert(number, variant);
                        self.pending.push_back(number);
                    }
                    _ => {
                        return Err(anyhow!(
                            "the earlier search of {} was made by another version of cere: start again with --again",
                            self.target.name
                        ));
                    }
                },
                Event::Told(number, told) => {
                    self.pending.retain(|n| *n != number);
                    self.learn(number, told);
                }
            }
        }
        self.earlier = self.told;
        Ok(())
    }

    fn spend(&mut self, timed: &Timed) {
        self.spent.timed += timed.timed;
        let preparation = timed.preparation;
        self.spent.restoring += preparation.restoring;
        self.spent.warming += preparation.warming;
        let rest = timed.wall - timed.timed - preparation.restoring - preparation.warming;
        self.spent.starting += rest.max(0.0);
    }

    /// The next variant, if one can be proposed now.
    pub fn propose(&mut self) -> Result<Option<(u64, Variant)>> {
        let Some((number, variant)) = self.search.propose() else {
            return Ok(None);
        };
        self.open.insert(number, variant.clone());
        self.journal
            .add(&Event::Proposed(number, variant.clone()))?;
        Ok(Some((number, variant)))
    }

    /// The next variant that was proposed and has no outcome yet.
    pub fn variant(&self, number: u64) -> Variant {
        self.open.get(&number).cloned().unwrap_or_default()
    }

    /// The variants with machine code of their own, and whether they failed.
    pub fn outcomes(&self) -> Vec<Outcome<'_>> {
        let failed = self.failed.iter().filter(|f| !f.same);
        let right = self.ranked.iter().map(|(_, variant)| (variant, false));
        right.chain(failed.map(|f| (&f.variant, true))).collect()
    }

    /// Weight for dividing the budget: the region's share of the run, with a small minimum.
    pub fn weight(&self) -> f64 {
        self.target.share.max(1e-6)
    }

    /// Whether proposals are pending.
    pub fn waits(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the search has ended.
    pub fn exhausted(&self) -> bool {
        !self.waits() && self.search.exhausted()
    }

    /// The best ratio so far; 1 without outcomes.
    pub fn best(&self) -> f64 {
        self.search.best().map_or(1.0, |(_, ratio)| ratio.min(1.0))
    }

    /// Times a built variant and records the outcome.
    pub fn evaluate(
        &mut self,
        lab: &dyn Measure,
        ahead: &Ahead,
        number: u64,
        built: Result<Builds, String>,
    ) -> Result<()> {
        let told = match built {
            Err(reason) => Told {
                ratio: None,
                reason: Some(reason),
                code: None,
                same: false,
            },
            Ok(builds) => {
                self.spent.compiling += builds.seconds;
                match self.target.known(&builds.code) {
                    Some(ratio) => Told {
                        ratio,
                        reason: ratio
                            .is_none()
                            .then(|| "another with the same code failed".into()),
                        code: Some(builds.code),
                        same: true,
                    },
                    None => self.measure(lab, ahead, number, builds)?,
                }
            }
        };
        self.journal.add(&Event::Told(number, told.clone()))?;
        self.learn(number, told);
        Ok(())
    }

    fn measure(
        &mut self,
        lab: &dyn Measure,
        ahead: &Ahead,
        number: u64,
        builds: Builds,
    ) -> Result<Told> {
        if self.baseline.due() {
            self.time_default(lab, ahead)?;
        }
        self.baseline.evaluates();
        let variant = self.variant(number);
        let as_built = self.baseline.seconds();
        let hopes = |seconds: &[f64]| self.target.ratio(&as_built, seconds) < HOPELESS;
        let timed = ahead.quietly(&mut self.spent.waiting, || {
            lab.time_while(self.target, &variant, &builds, (false, None), &hopes)
        });
        if let Ok(timed) = &timed {
            self.spend(timed);
        }
        let ratio = timed.map(|timed| self.target.ratio(&as_built, &timed.seconds));
        Ok(Told {
            reason: ratio.as_ref().err().cloned(),
            ratio: ratio.ok(),
            code: Some(builds.code),
            same: false,
        })
    }

    /// Whether the best variant so far reaches the target when it is measured again.
    pub fn reaches(&mut self, lab: &dyn Measure, ahead: &Ahead, wanted: f64) -> bool {
        /// Timings.
        const ROUNDS: usize = 3;
        let Some((variant, _)) = self.search.best() else {
            return false;
        };
        let variant = variant.clone();
        let Ok(builds) = lab.build(self.target, &variant) else {
            return false;
        };
        let arms = vec![
            Arm::of(&Variant::default(), &self.default),
            Arm::of(&variant, &builds),
        ];
        let ratios = ahead.quietly(&mut self.spent.waiting, || {
            let mut turns = Arms::turns(lab, self.target, arms);
            for _ in 0..ROUNDS {
                turns.round(&[1])?;
            }
            Ok::<_, String>(ratios(&turns, 1))
        });
        let gain = ratios.ok().and_then(|ratios| gain(&ratios));
        gain.is_some_and(|gain| gain.ratio <= 1.0 / wanted)
    }

    fn time_default(&mut self, lab: &dyn Measure, ahead: &Ahead) -> Result<()> {
        let variant = Variant::default();
        let timed = ahead.quietly(&mut self.spent.waiting, || {
            lab.time(self.target, &variant, &self.default, false, None)
        });
        let timed = timed
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("{} as built", self.target.name))?;
        self.spend(&timed);
        self.baseline.add(timed.seconds);
        Ok(())
    }

    fn learn(&mut self, number: u64, told: Told) {
        let variant = self.open.remove(&number).unwrap_or_default();
        self.search.tell(number, told.ratio);
        self.told += 1;
        self.same += u64::from(told.same);
        match (told.ratio, told.reason) {
            (Some(ratio), _) if !told.same => self.ranked.push((ratio, variant)),
            (Some(_), _) => {}
            (None, reason) => self.failed.push(Failure {
                variant,
                reason: reason.unwrap_or_default(),
                same: told.same,
            }),
        }
        if let Some(code) = told.code {
            self.target.learn(code, told.ratio);
        }
    }
}
