//! Ratios of replays under flags to replays as built, for each region and for the run.

use anyhow::{Error, Result};
use cere_measure::{Bench, Builds, Measure, Target, Turns};
use cere_system::events::Events;
use cere_toolchain::several::several;
use cere_tune::Variant;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Error that the replays of one region may add to the predicted time, as a share of it.
const PRECISION: f64 = 0.002;
/// Bounds of the resulting interval of a replay's median, as a share.
const NARROWEST: f64 = 0.002;
const WIDEST: f64 = 0.05;
/// Seconds of repetitions of one codelet in all rounds together, for a region with the mean share.
const SECONDS: f64 = 0.6;
/// Their bounds for one round.
const LEAST: f64 = 0.02;
const MOST: f64 = 0.3;

/// Variants timed between two timings of the code as built: the speed of the machine may change.
const BETWEEN: usize = 4;

/// The run's time over that as built where each target takes so many times its time as built.
pub type OfRun<'a> = &'a dyn Fn(&[f64]) -> f64;

/// That of a run in which `targets` have their shares.
pub fn by_shares(targets: &[Target]) -> impl Fn(&[f64]) -> f64 {
    let shares: Vec<f64> = targets.iter().map(|target| target.share).collect();
    move |ratios| {
        let changes = shares.iter().zip(ratios);
        1.0 + changes
            .map(|(share, ratio)| share * (ratio - 1.0))
            .sum::<f64>()
    }
}

/// For each variant and round, the run's time over that of the plain build, or why it is unknown.
pub type Ratios = Vec<Result<Vec<f64>, Reason>>;

/// What became of a region under a variant, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// Name of the region.
    pub region: String,
    /// Why.
    pub why: String,
}

/// A region that counts as profiled under a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct AsProfiled {
    /// Which, and why.
    pub reason: Reason,
    /// Its share of the run's time.
    pub share: f64,
}

/// The outcome of all replays.
pub struct Found {
    /// One entry for each variant.
    pub ratios: Ratios,
    /// One entry for each variant: the regions that count as profiled under it.
    pub as_profiled: Vec<Vec<AsProfiled>>,
    /// Share of the run's time in regions that were replayed.
    pub covered: f64,
    /// Seconds that compiling took, on all processors together.
    pub compiled: f64,
    /// Seconds that the replays took, all rounds together.
    pub replayed: f64,
}

/// One region under all variants.
struct Region<'a> {
    lab: Box<dyn Measure + 'a>,
    target: &'a Target,
    as_built: Builds,
    /// Builds of different machine code, other than the code as built, each with the first variant that gives it.
    others: Vec<(&'a Variant, Builds)>,
    /// For each variant the index of its code in `others`, `None` for the code as built; or why it has none.
    places: Vec<Result<Option<usize>, String>>,
    /// Seconds that compiling took, on all processors together.
    compiled: f64,
    /// Numbers of those of `others`, from 1, whose results were judged.
    judged: RefCell<BTreeSet<usize>>,
    /// Of those, which were once too short to be timed.
    short: RefCell<BTreeMap<usize, String>>,
}

/// The times of a region under a variant.
enum Timed {
    /// Over those as built, round by round.
    Ratios(Vec<f64>),
    /// Too short to be timed.
    Short(String),
    /// None: why.
    Failed(String),
}

/// Replays all regions under all variants, and composes their ratios by `of_run`. A region's error counts in proportion to its share,
/// so regions with a small share get fewer and shorter rounds.
pub fn ratios(
    lab: &dyn Measure,
    targets: &[Target],
    variants: &[Variant],
    rounds: u32,
    of_run: OfRun,
    events: &Events,
) -> Found {
    let replays = targets.len() as u64 * variants.len() as u64;
    let bar = events.steps("replaying", replays);
    let covered: f64 = targets.iter().map(|t| t.share).sum();
    // Of each variant, for each round: those of all targets. What is not replayed counts as profiled.
    let as_built = vec![vec![1.0; targets.len()]; rounds as usize];
    let mut each: Vec<Result<Vec<Vec<f64>>, Reason>> = vec![Ok(as_built); variants.len()];
    let mut found = Found {
        ratios: Vec::new(),
        as_profiled: vec![Vec::new(); variants.len()],
        covered,
        compiled: 0.0,
        replayed: 0.0,
    };
    for (place, target) in targets.iter().enumerate() {
        bar.at(&target.name);
        // Of the mean share.
        let part = target.share * targets.len() as f64 / covered;
        let own = ((f64::from(rounds) * part).ceil() as u32).clamp(1, rounds);
        let start = Instant::now();
        let region = Region::build(lab, target, variants, part / f64::from(own));
        let built = start.elapsed().as_secs_f64();
        let of = region.and_then(|region| {
            found.compiled += region.compiled;
            region.rounds(own)
        });
        found.replayed += start.elapsed().as_secs_f64() - built;
        bar.steps(variants.len() as u64);
        let of = match of {
            Ok(of) => of,
            Err(why) => {
                let name = &target.name;
                events.note(format!(
                    "{name} cannot be replayed as built, and counts as in the profile: {why}"
                ));
                found.covered -= target.share;
                continue;
            }
        };
        let all = each.iter_mut().zip(&mut found.as_profiled);
        for (own, (all, as_profiled)) in of.into_iter().zip(all) {
            let reason = |why| Reason {
                region: target.name.clone(),
                why,
            };
            match (own, &mut *all) {
                (Timed::Ratios(ratios), Ok(rounds)) => {
                    for (round, ratio) in rounds.iter_mut().zip(ratios.iter().cycle()) {
                        round[place] = *ratio;
                    }
                }
                (Timed::Short(why), Ok(_)) => as_profiled.push(AsProfiled {
                    reason: reason(why),
                    share: target.share,
                }),
                (Timed::Failed(why), Ok(_)) => *all = Err(reason(why)),
                (_, Err(_)) => {}
            }
        }
    }
    let rounds = each.into_iter();
    let run = |rounds: Vec<Vec<f64>>| rounds.iter().map(|round| of_run(round)).collect();
    found.ratios = rounds.map(|rounds| rounds.map(run)).collect();
    found
}

impl<'a> Region<'a> {
    /// Compiles the codelets of `target`, for rounds of that many times [`SECONDS`] each.
    fn build(
        lab: &'a dyn Measure,
        target: &'a Target,
        variants: &'a [Variant],
        part: f64,
    ) -> Result<Self> {
        let precision = (PRECISION / target.share).clamp(NARROWEST, WIDEST);
        let lab = lab.repeating(precision, (SECONDS * part).clamp(LEAST, MOST));
        let as_built = lab.build(target, &Variant::default());
        let as_built = as_built.map_err(Error::msg)?;
        target.learn(as_built.code.clone(), Some(1.0));
        let built = several(variants.len(), |place| {
            lab.build_new(target, &variants[place])
        });
        let seconds = built.iter().flatten().map(|b| b.seconds);
        let compiled = as_built.seconds + seconds.sum::<f64>();
        let mut others: Vec<(&Variant, Builds)> = Vec::new();
        let mut places = Vec::new();
        for (variant, builds) in variants.iter().zip(built) {
            places.push(builds.map(|builds| {
                if builds.code == as_built.code {
                    return None;
                }
                let same = others.iter().position(|o| o.1.code == builds.code);
                same.or_else(|| {
                    others.push((variant, builds));
                    Some(others.len() - 1)
                })
            }));
        }
        Ok(Self {
            lab,
            target,
            as_built,
            others,
            places,
            compiled,
            judged: RefCell::default(),
            short: RefCell::default(),
        })
    }

    /// For each variant the time over that as built, round by round; an error if the code as built cannot be timed.
    fn rounds(&self, rounds: u32) -> Result<Vec<Timed>> {
        let others: Vec<usize> = (1..=self.others.len()).collect();
        let mut turns = Turns::new(self, BETWEEN);
        for _ in 0..rounds {
            turns.round(&others)?;
        }
        let short = self.short.borrow();
        let ratio = |base: &[f64], now: &[f64]| self.target.ratio(base, now);
        let each = self.places.iter().map(|place| match place {
            Ok(Some(other)) => match (turns.failure(other + 1), short.get(&(other + 1))) {
                (Some(why), _) => Timed::Failed(why.to_owned()),
                (None, Some(why)) => Timed::Short(why.clone()),
                (None, None) => Timed::Ratios(turns.series().ratios(other + 1, ratio)),
            },
            Ok(None) => Timed::Ratios(vec![1.0; rounds as usize]),
            Err(why) => Timed::Failed(why.clone()),
        });
        Ok(each.collect())
    }
}

/// The code as built is the baseline, the others follow.
impl Bench for &Region<'_> {
    type Error = Error;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>, Error> {
        let as_built = Variant::default();
        let (variant, builds) = match subject.checked_sub(1) {
            None => (&as_built, &self.as_built),
            Some(other) => (self.others[other].0, &self.others[other].1),
        };
        let judged = subject > 0 && self.judged.borrow_mut().insert(subject);
        let how = (judged, None);
        let timed = self
            .lab
            .time_while(self.target, variant, builds, how, &|_| true);
        Ok(timed.and_then(|timed| {
            if let Err(why) = self.target.check_timed_weight(&timed.costs) {
                if subject == 0 {
                    return Err(why);
                }
                self.short.borrow_mut().insert(subject, why);
            }
            Ok(timed.costs)
        }))
    }
}

#[cfg(test)]
mod tests;
