//! Searches of a space: proposals out, outcomes in.

mod effects;
mod groups;
mod method;
mod point;
mod population;
mod random;
#[cfg(test)]
mod tests;
mod trial;

pub use method::{Method, MethodError};

use crate::pipeline::Pipeline;
use crate::space::{Space, SpaceError};
use cere_toolchain::Variant;
use point::{Ground, Point};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use std::collections::HashSet;
use trial::{Outcome, Trial, best};

/// Maximum pending proposals when the next one depends on their outcomes, unless [`Search::awaiting`] says otherwise.
pub const AWAITED: usize = 20;
/// Draws for a new variant before the space is enumerated instead.
const DRAWS: usize = 100;

/// A search of a space. The same seed and the same outcomes told in the same order give the same proposals.
///
/// It begins with the choices of the group `level`, each alone, unless [`Search::starting_with`] says otherwise; what follows depends on the [`Method`].
#[derive(Debug, Clone)]
pub struct Search {
    ground: Ground,
    method: Method,
    rng: Xoshiro256PlusPlus,
    trials: Vec<Trial>,
    /// Proposed variants, and the empty one.
    seen: HashSet<Variant>,
    /// The first proposals, in reverse order.
    first: Vec<Point>,
    /// How many trials those were.
    started: usize,
    /// Position of the enumeration of all choices; `None` after its end.
    walk: Option<Vec<usize>>,
    exhausted: bool,
    awaited: usize,
}

impl Search {
    /// A search of `space`. `pipeline`: the passes of the space's sequences, as `opt -print-pipeline-passes` prints them;
    /// an error if the space has sequences and they are not given.
    pub fn new(
        space: Space,
        pipeline: Option<Pipeline>,
        method: Method,
        seed: u64,
    ) -> Result<Self, SpaceError> {
        let ground = Ground::new(space, pipeline)?;
        let mut first = ground.levels();
        first.reverse();
        Ok(Self {
            walk: Some(vec![0; ground.groups()]),
            ground,
            method,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            trials: Vec::new(),
            seen: HashSet::from([Variant::default()]),
            first,
            started: 0,
            exhausted: false,
            awaited: AWAITED,
        })
    }

    /// With up to `most` pending proposals when the next one depends on their outcomes, instead of [`AWAITED`]. More of them
    /// can be evaluated at a time, and less is known when they are made.
    #[must_use]
    pub fn awaiting(mut self, most: usize) -> Self {
        self.awaited = most.max(1);
        self
    }

    /// Proposing these choices before all others, in their order. Choices that the space does not have are left out.
    #[must_use]
    pub fn starting_with<'c>(
        mut self,
        starts: impl IntoIterator<Item = &'c [Vec<String>]>,
    ) -> Self {
        let points = starts.into_iter().filter_map(|s| self.ground.point_of(s));
        let mut first: Vec<Point> = points.collect();
        first.reverse();
        self.first.append(&mut first);
        self
    }

    /// The next variant to measure, with its number from 0: never one that was proposed before, nor the empty one. None
    /// if outcomes of earlier ones are needed first, or if there are no others ([`Search::exhausted`]).
    pub fn propose(&mut self) -> Option<(u64, Variant)> {
        while let Some(point) = self.first.pop() {
            if let Some(variant) = self.new_variant(&point) {
                self.started += 1;
                return Some(self.record(point, variant));
            }
        }
        let awaited = |t: &&Trial| t.outcome == Outcome::Awaited;
        if self.method != Method::Random
            && self.trials.iter().filter(awaited).count() >= self.awaited
        {
            return None;
        }
        let found = self.by_method().or_else(|| self.by_walk());
        self.exhausted = found.is_none();
        found.map(|(point, variant)| self.record(point, variant))
    }

    /// Reports the outcome of a proposal: its time over that of the code as built. `None`, or a ratio that is not positive and
    /// finite, means that it failed (the compiler crashed, the result is wrong, it took too long). Outcomes may come in any
    /// order. The last one for a proposal counts; numbers that were never proposed are ignored.
    pub fn tell(&mut self, number: u64, ratio: Option<f64>) {
        let trial = usize::try_from(number).ok();
        if let Some(trial) = trial.and_then(|n| self.trials.get_mut(n)) {
            trial.outcome = match ratio.filter(|r| r.is_finite() && *r > 0.0) {
                Some(ratio) => Outcome::Ratio(ratio),
                None => Outcome::Failed,
            };
        }
    }

    /// Whether the last call of [`Search::propose`] found nothing new in the whole space or, with sequences, in a hundred
    /// samples.
    pub fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// The best variant so far with its ratio: among those within half a percent of the minimum ratio, the one with the shortest
    /// pipeline and the fewest flags.
    pub fn best(&self) -> Option<(&Variant, f64)> {
        let trial = best(&self.trials, |_| true)?;
        Some((&trial.variant, trial.ratio()?))
    }

    fn by_method(&mut self) -> Option<(Point, Variant)> {
        let (ground, rng) = (&self.ground, &mut self.rng);
        let (trials, searched) = (&self.trials, self.trials.len() - self.started);
        let new = |p: &Point| ground.variant(p).filter(|v| !self.seen.contains(v));
        let mut draws = |draw: &mut dyn FnMut(&mut Xoshiro256PlusPlus) -> Option<Point>| {
            (0..DRAWS).find_map(|_| draw(rng).and_then(|p| new(&p).map(|v| (p, v))))
        };
        let found = match self.method {
            Method::Random => None,
            Method::Groups => {
                let mut plan = groups::Plan::of(ground, trials, searched);
                draws(&mut |rng| plan.draw(rng, &|p| new(p).is_some()))
            }
        };
        found.or_else(|| draws(&mut |rng| random::draw(ground, rng)))
    }

    /// The next new variant of the enumeration: draws may miss the last ones of a space that is nearly exhausted.
    fn by_walk(&mut self) -> Option<(Point, Variant)> {
        while let Some(choices) = &mut self.walk {
            let point = Point::Choices(choices.clone());
            if !self.ground.advance(choices) {
                self.walk = None;
            }
            if let Some(variant) = self.new_variant(&point) {
                return Some((point, variant));
            }
        }
        None
    }

    fn new_variant(&self, point: &Point) -> Option<Variant> {
        let variant = self.ground.variant(point);
        variant.filter(|v| !self.seen.contains(v))
    }

    fn record(&mut self, point: Point, variant: Variant) -> (u64, Variant) {
        self.seen.insert(variant.clone());
        self.trials.push(Trial {
            point,
            variant: variant.clone(),
            outcome: Outcome::Awaited,
        });
        (self.trials.len() as u64 - 1, variant)
    }
}
