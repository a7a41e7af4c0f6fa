//! Evaluates variants of one region on this machine.

use super::ahead::Ahead;
use super::arms::{Arm, Arms, ratios};
use super::baseline::Baseline;
use super::confirm::{Again, Decision};
use super::journal::Told;
use super::spent::Spent;
use crate::Variant;
use anyhow::Result;
use cere_catalogue::anyhow;
use cere_measure::decide::Rule;
use cere_measure::{Builds, Measure, Target};
use cere_timing::stats::gain;
use std::time::Instant;

/// A variant whose first codelets take this many times longer than as built is not timed on the others.
const HOPELESS: f64 = 1.05;

/// Limit of a compile or a replay: this many times the time as built, and a minimum in seconds.
const SLOWER: f64 = 10.0;
const LEAST_LIMIT: f64 = 5.0;

/// Times variants of one region, between timings of the code as built.
pub struct Evaluator<'a> {
    target: &'a Target,
    /// The code as built.
    pub default: Builds,
    baseline: Baseline,
    /// Where the time went since it was taken last.
    pub spent: Spent,
}

impl<'a> Evaluator<'a> {
    /// Builds and replays the code as built.
    ///
    /// # Errors
    /// It cannot be replayed, or has another result.
    pub fn begin(lab: &dyn Measure, target: &'a Target) -> Result<Self> {
        let failed = |why| anyhow!(E6402, "{} cannot be replayed as built: {why}", target.name);
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
        let mut spent = Spent::default();
        spent.add_replays(&timed);
        Ok(Self {
            target,
            default,
            baseline: Baseline::of(timed.costs),
            spent,
        })
    }

    /// The outcome of a built variant, which is timed unless that of its machine code is known.
    ///
    /// # Errors
    /// The code as built cannot be replayed any more.
    pub fn evaluate(
        &mut self,
        lab: &dyn Measure,
        ahead: &Ahead,
        variant: &Variant,
        built: Result<Builds, String>,
    ) -> Result<Told> {
        let builds = match built {
            Err(reason) => return Ok(Told::failed(reason, None)),
            Ok(builds) => builds,
        };
        self.spent.compiling += builds.seconds;
        if let Some(ratio) = self.target.known(&builds.code) {
            return Ok(Told::same_as(ratio, builds.code));
        }
        if self.baseline.due() {
            self.time_default(lab, ahead)?;
        }
        self.baseline.evaluates();
        let as_built = self.baseline.seconds();
        let hopes = |seconds: &[f64]| self.target.ratio(&as_built, seconds) < HOPELESS;
        let timed = ahead.quietly(&mut self.spent.waiting, || {
            lab.time_while(self.target, variant, &builds, (false, None), &hopes)
        });
        let timed = timed.and_then(|timed| {
            self.target.check_timed_weight(&timed.costs)?;
            Ok(timed)
        });
        Ok(match timed {
            Err(reason) => Told::failed(reason, Some(builds.code)),
            Ok(timed) => {
                self.spent.add_replays(&timed);
                Told {
                    ratio: Some(self.target.ratio(&as_built, &timed.costs)),
                    reason: None,
                    code: Some(builds.code),
                    same: false,
                }
            }
        })
    }

    /// Whether a variant is so many times faster when it is measured again, in turns with the code as built.
    pub fn reaches(
        &mut self,
        lab: &dyn Measure,
        ahead: &Ahead,
        variant: &Variant,
        wanted: f64,
    ) -> bool {
        /// Timings.
        const ROUNDS: usize = 3;
        let only = std::slice::from_ref(variant);
        self.measure_again(lab, ahead, (only, true), ROUNDS, 1.0 / wanted)
    }

    /// Whether one of `variants` gains when they are measured again, as often as the rule for finalists needs to give one up.
    pub fn gains(&mut self, lab: &dyn Measure, ahead: &Ahead, variants: &[Variant]) -> bool {
        let rule = Rule::for_rivals();
        self.measure_again(lab, ahead, (variants, false), rule.first, 1.0 - rule.margin)
    }

    /// Whether the time of one of `variants`, whose results are judged or not, over that as built is at most `ratio` in the median
    /// of so many rounds.
    fn measure_again(
        &mut self,
        lab: &dyn Measure,
        ahead: &Ahead,
        (variants, judged): (&[Variant], bool),
        rounds: usize,
        ratio: f64,
    ) -> bool {
        let start = Instant::now();
        let built = |variant| Some((variant, lab.build(self.target, variant).ok()?));
        let builds: Vec<(&Variant, Builds)> = variants.iter().filter_map(built).collect();
        let others = builds
            .iter()
            .map(|(variant, builds)| Arm::of(variant, builds));
        let as_built = Arm::of(&Variant::default(), &self.default);
        let mut turns = Arms::turns(
            lab,
            self.target,
            std::iter::once(as_built).chain(others).collect(),
        );
        turns.bench.judged.fill(!judged);
        let all: Vec<usize> = (1..=builds.len()).collect();
        let mut waited = 0.0;
        let measured = ahead.quietly(&mut waited, || {
            all.is_empty() || (0..rounds).all(|_| turns.round(&all).is_ok())
        });
        self.spent.confirming += start.elapsed().as_secs_f64();
        let reaches = |arm: &usize| gain(&ratios(&turns, *arm)).is_some_and(|g| g.ratio <= ratio);
        measured && all.iter().any(reaches)
    }

    /// Measures the best variants again.
    ///
    /// # Errors
    /// The code as built cannot be replayed any more.
    pub fn decide(&mut self, lab: &dyn Measure, again: &Again) -> Result<Decision> {
        let start = Instant::now();
        let decision = again.decide(lab, self.target, &self.default);
        self.spent.confirming += start.elapsed().as_secs_f64();
        decision
    }

    fn time_default(&mut self, lab: &dyn Measure, ahead: &Ahead) -> Result<()> {
        let variant = Variant::default();
        let timed = ahead.quietly(&mut self.spent.waiting, || {
            lab.time(self.target, &variant, &self.default, false, None)
        });
        let timed = timed.map_err(|why| anyhow!(E6402, "{} as built: {why}", self.target.name))?;
        self.spent.add_replays(&timed);
        self.baseline.add(timed.costs);
        Ok(())
    }
}
