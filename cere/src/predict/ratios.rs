//! What flags do to each region's replays, and so to the run.

use crate::progress;
use crate::tune::{Builds, Lab, Target};
use cere_compile::several::several;
use cere_format::replay::Repetitions;
use cere_tune::Variant;
use std::collections::HashMap;
use std::time::Instant;

/// What the error of one region's replays may add to the predicted time, as a share of it.
const PRECISION: f64 = 0.002;
/// The narrowest and the widest interval of a replay's median that this may come to, as a share.
const NARROWEST: f64 = 0.002;
const WIDEST: f64 = 0.05;
/// Seconds of repetitions of one codelet in all rounds together, of a region with a mean share.
const SECONDS: f64 = 0.6;
/// Their bounds in one round.
const LEAST: f64 = 0.02;
const MOST: f64 = 0.3;

/// Variants that are timed between two timings of the code as built: the machine may be at another speed.
const BETWEEN: usize = 4;

/// Of each variant in each round the run's time over that of the plain build, or why it cannot be told.
pub type Ratios = Vec<Result<Vec<f64>, String>>;

/// What came of all replays.
pub struct Found {
    /// For each variant.
    pub ratios: Ratios,
    /// Share of the run's time in regions that were replayed.
    pub covered: f64,
    /// Seconds that compiling took, on all processors together.
    pub compiled: f64,
    /// Seconds that the replays took, all rounds together.
    pub replayed: f64,
}

/// One region under all variants.
struct Region<'a> {
    lab: Lab<'a>,
    target: &'a Target,
    variants: &'a [Variant],
    as_built: Builds,
    built: Vec<Result<Builds, String>>,
    /// Places of variants that have machine code which none before them has, and which is not that as built.
    other: Vec<usize>,
}

/// Replays all regions under all variants. What a region's error adds to that of the run is its share's, so those of small
/// share get fewer rounds and shorter ones.
pub fn ratios(lab: &Lab, targets: &[Target], variants: &[Variant], rounds: u32) -> Found {
    let bar = progress::bar("replaying", targets.len() as u64 * variants.len() as u64);
    let covered: f64 = targets.iter().map(|t| t.share).sum();
    let mut found = Found {
        ratios: vec![Ok(vec![1.0; rounds as usize]); variants.len()],
        covered,
        compiled: 0.0,
        replayed: 0.0,
    };
    for target in targets {
        bar.set_message(target.name.clone());
        // Of the mean share.
        let part = target.share * targets.len() as f64 / covered;
        let own = ((f64::from(rounds) * part).ceil() as u32).clamp(1, rounds);
        let start = Instant::now();
        let region = Region::build(lab, target, variants, part / f64::from(own));
        let built = start.elapsed().as_secs_f64();
        let of = region.and_then(|region| {
            let seconds = region.built.iter().flatten().map(|b| b.seconds);
            found.compiled += region.as_built.seconds + seconds.sum::<f64>();
            region.rounds(own)
        });
        found.replayed += start.elapsed().as_secs_f64() - built;
        bar.inc(variants.len() as u64);
        let of = match of {
            Ok(of) => of,
            Err(why) => {
                let name = &target.name;
                bar.suspend(|| eprintln!("cere: {name} cannot be replayed as built, and counts as in the profile: {why}"));
                found.covered -= target.share;
                continue;
            }
        };
        for (own, all) in of.into_iter().zip(&mut found.ratios) {
            match (own, &mut *all) {
                (Ok(ratios), Ok(sums)) => {
                    for (sum, ratio) in sums.iter_mut().zip(ratios.iter().cycle()) {
                        *sum += target.share * (ratio - 1.0);
                    }
                }
                (Err(why), Ok(_)) => *all = Err(format!("{}: {why}", target.name)),
                (_, Err(_)) => {}
            }
        }
    }
    bar.finish_and_clear();
    found
}

/// Times at the place `part`, 0 to 1, between two timings; 0 where either tells nothing.
fn between(before: &[f64], after: &[f64], part: f64) -> Vec<f64> {
    let each = before.iter().zip(after);
    each.map(|(&before, &after)| match before > 0.0 && after > 0.0 {
        true => before + part * (after - before),
        false => 0.0,
    })
    .collect()
}

impl<'a> Region<'a> {
    /// Compiles the codelets of `target`, for rounds of so many times [`SECONDS`] each.
    fn build(
        lab: &Lab<'a>,
        target: &'a Target,
        variants: &'a [Variant],
        part: f64,
    ) -> Result<Self, String> {
        let mut lab = lab.clone();
        let repetitions = &mut lab.request.repetitions;
        if *repetitions == Repetitions::default() {
            repetitions.precision = (PRECISION / target.share).clamp(NARROWEST, WIDEST);
            repetitions.seconds = (SECONDS * part).clamp(LEAST, MOST);
        }
        let as_built = lab.build(target, &Variant::default())?;
        target.learn(as_built.code.clone(), Some(1.0));
        let built = several(variants.len(), |place| {
            lab.build_new(target, &variants[place])
        });
        let mut other: Vec<usize> = Vec::new();
        for (place, builds) in built.iter().enumerate() {
            let Ok(builds) = builds else { continue };
            let has = |p: &usize| built[*p].as_ref().is_ok_and(|b| b.code == builds.code);
            if builds.code != as_built.code && !other.iter().any(has) {
                other.push(place);
            }
        }
        Ok(Self {
            lab,
            target,
            variants,
            as_built,
            built,
            other,
        })
    }

    /// Of each variant the time over that as built, round by round; an error if the code as built cannot be timed.
    fn rounds(&self, rounds: u32) -> Result<Ratios, String> {
        let mut before = Ok(self.before()?);
        let mut of: HashMap<&str, Result<Vec<f64>, String>> = HashMap::new();
        of.insert(&self.as_built.code, Ok(vec![1.0; rounds as usize]));
        for round in 0..rounds {
            // The machine's speed may go one way in a round; the next one takes the variants in the other order.
            let failed = |place: &usize| {
                let code = self.built[*place].as_ref().map(|b| &*b.code);
                code.is_ok_and(|code| of.get(code).is_some_and(Result::is_err))
            };
            let mut order: Vec<usize> = self.other.clone();
            order.retain(|place| !failed(place));
            if round % 2 == 1 {
                order.reverse();
            }
            for some in order.chunks(BETWEEN) {
                let now: Vec<_> = some
                    .iter()
                    .map(|&place| self.now(place, round == 0))
                    .collect();
                let after = self.before();
                for (number, (&place, now)) in some.iter().zip(now).enumerate() {
                    let Ok(builds) = &self.built[place] else {
                        continue;
                    };
                    let found = of.entry(&builds.code).or_insert_with(|| Ok(Vec::new()));
                    let Ok(ratios) = found else { continue };
                    let part = (number + 1) as f64 / (some.len() + 1) as f64;
                    let ratio = || -> Result<f64, String> {
                        let then = between(&before.clone()?, &after.clone()?, part);
                        Ok(self.target.ratio(&then, &now?))
                    };
                    match ratio() {
                        Ok(ratio) => ratios.push(ratio),
                        Err(why) => *found = Err(why),
                    }
                }
                before = after;
            }
        }
        let of = |builds: &Result<Builds, String>| match builds {
            Ok(builds) => of[&*builds.code].clone(),
            Err(why) => Err(why.clone()),
        };
        Ok(self.built.iter().map(of).collect())
    }

    /// Seconds of the codelets as built, now.
    fn before(&self) -> Result<Vec<f64>, String> {
        let variant = Variant::default();
        let timed = (self.lab).time(self.target, &variant, &self.as_built, false, None)?;
        Ok(timed.seconds)
    }

    /// Likewise, under the variant at `place`.
    fn now(&self, place: usize, judged: bool) -> Result<Vec<f64>, String> {
        let builds = self.built[place].as_ref().map_err(Clone::clone)?;
        let variant = &self.variants[place];
        let timed = (self.lab).time(self.target, variant, builds, judged, None)?;
        Ok(timed.seconds)
    }
}
