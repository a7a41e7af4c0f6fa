//! Learns which groups of flags matter and searches those, after FuncyTuner (Wang et al., ICPP 2019) and GroupTuner (Gao et
//! al., LCTES 2025): random variants first, then the best ones with other choices in the groups that matter, interleaved
//! with the best one without what it does not need.

use super::effects::Effects;
use super::point::{Ground, Point};
use super::population::Population;
use super::random;
use super::trial::{Trial, best};
use rand::{Rng, RngExt};

/// Share of random variants after the first ones.
const EXPLORE: f64 = 0.15;
/// Share of variants made of the best choice of every group.
const ASSEMBLE: f64 = 0.15;
/// One in this many proposals simplifies the best variant.
const SIMPLIFY: usize = 4;
/// Number of best variants that others are derived from.
const PARENTS: usize = 5;
/// Probability that a random variant keeps a choice that fails: another choice may have been the cause.
const FORGIVE: f64 = 0.05;

/// Knowledge for one proposal.
pub(super) struct Plan<'a> {
    ground: &'a Ground,
    effects: Effects,
    /// The best choices so far, best first.
    parents: Vec<&'a [usize]>,
    sequences: Population<'a>,
    /// The best variant without some of its parts, if it is time to simplify.
    simpler: Vec<Point>,
    screening: bool,
    /// Share of sequences.
    share: f64,
}

impl<'a> Plan<'a> {
    /// After `trials`, `searched` of which are the method's own.
    pub(super) fn of(ground: &'a Ground, trials: &'a [Trial], searched: usize) -> Self {
        let effects = Effects::of(ground, trials);
        let known = best(trials, |_| true);
        let mut told: Vec<(&[usize], f64)> = trials
            .iter()
            .filter_map(|t| Some((t.point.choices()?, t.ratio()?)))
            .collect();
        told.sort_by(|a, b| a.1.total_cmp(&b.1));
        let choices: usize = (0..ground.groups()).map(|g| ground.choices(g)).sum();
        let screening =
            searched < choices.clamp(12, 40) * if ground.has_sequences() { 2 } else { 1 };
        let share = match (ground.has_sequences(), ground.groups()) {
            (false, _) => 0.0,
            (true, 0) => 1.0,
            (true, _) if screening => 0.5,
            (true, _) if known.is_some_and(|t| t.point.is_sequence()) => 0.5,
            (true, _) => 0.2,
        };
        let due = !screening && searched.is_multiple_of(SIMPLIFY);
        let mut simpler = match known.filter(|_| due) {
            Some(trial) => simplified_points(&trial.point, &effects),
            None => Vec::new(),
        };
        simpler.reverse();
        Self {
            ground,
            effects,
            parents: told.into_iter().take(PARENTS).map(|(c, _)| c).collect(),
            sequences: Population::of(trials, Point::is_sequence),
            simpler,
            screening,
            share,
        }
    }

    /// Draws a point. It may have been proposed before; `fresh` checks that.
    pub(super) fn draw<R: Rng>(
        &mut self,
        rng: &mut R,
        fresh: &dyn Fn(&Point) -> bool,
    ) -> Option<Point> {
        while let Some(point) = self.simpler.pop() {
            if fresh(&point) {
                return Some(point);
            }
        }
        if rng.random::<f64>() < self.share {
            return self.sequence(rng);
        }
        if self.ground.groups() == 0 {
            return None;
        }
        if self.screening || self.parents.is_empty() || rng.random_bool(EXPLORE) {
            return Some(random::choices(self.ground, rng, |g, rng| {
                self.draw_rarest(g, rng)
            }));
        }
        let of_all = rng.random_bool(ASSEMBLE);
        let mut choices = self.parents[draw_rank(self.parents.len(), rng)].to_vec();
        let groups = match of_all {
            true => (0..choices.len()).collect(),
            false => self.draw_important(rng),
        };
        for group in groups {
            let other = (!of_all).then_some(choices[group]);
            choices[group] = self.draw_promising(group, other, rng);
        }
        Some(Point::Choices(choices))
    }

    fn sequence(&self, rng: &mut impl Rng) -> Option<Point> {
        if self.screening || self.sequences.is_empty() || rng.random_bool(EXPLORE) {
            return self.ground.sequence(rng);
        }
        Some(self.sequences.child(self.ground, rng))
    }

    /// One of the choices with the fewest trials, so that all soon have samples.
    fn draw_rarest(&self, group: usize, rng: &mut impl Rng) -> usize {
        let forgive = rng.random_bool(FORGIVE);
        let effect = |c| self.effects.choice(group, c);
        let usable = || {
            let all = 1..=self.ground.choices(group);
            all.filter(|c| forgive || !effect(*c).fails())
        };
        let least = usable().map(|c| effect(c).tried).min();
        let rarest: Vec<usize> = usable()
            .filter(|c| Some(effect(*c).tried) == least)
            .collect();
        match rarest.len() {
            0 => 0,
            n => rarest[rng.random_range(0..n)],
        }
    }

    /// Draws one group or a few, important ones with a higher probability.
    fn draw_important(&self, rng: &mut impl Rng) -> Vec<usize> {
        let mut weights: Vec<f64> = (0..self.ground.groups())
            .map(|g| self.effects.importance(g))
            .collect();
        let mut chosen = Vec::new();
        loop {
            let total: f64 = weights.iter().sum();
            let mut at = rng.random::<f64>() * total;
            let found = weights.iter().position(|w| {
                at -= w;
                *w > 0.0 && at < 0.0
            });
            let Some(group) = found else {
                return chosen;
            };
            chosen.push(group);
            weights[group] = 0.0;
            if rng.random_bool(0.5) {
                return chosen;
            }
        }
    }

    /// The choice of a group that is the best if effects are what they may be (Thompson sampling), but not `other`.
    fn draw_promising(&self, group: usize, other: Option<usize>, rng: &mut impl Rng) -> usize {
        let effects = self.effects.group(group).iter().enumerate();
        let usable = effects.filter(|(c, e)| Some(*c) != other && !e.fails());
        let drawn = usable.map(|(c, e)| (c, e.mean + e.error * draw_normal(rng)));
        let drawn: Vec<(usize, f64)> = drawn.collect();
        let best = drawn.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(0, |(c, _)| *c)
    }
}

/// A rank below `of`, each half as likely as the one before; the first if there are too few.
fn draw_rank(of: usize, rng: &mut impl Rng) -> usize {
    let halves = rng.random::<u32>().trailing_zeros() as usize;
    if halves < of { halves } else { 0 }
}

/// Draws from the standard normal distribution (Box and Muller).
fn draw_normal(rng: &mut impl Rng) -> f64 {
    let (radius, angle) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// `point` without all that does not help by what is known, and without one part at a time, the least helpful first.
fn simplified_points(point: &Point, effects: &Effects) -> Vec<Point> {
    match point {
        Point::Choices(choices) => {
            let taken = choices.iter().enumerate().filter(|(_, c)| **c > 0);
            let effect = |(group, choice): (usize, &usize)| {
                let effect = effects.choice(group, *choice);
                (group, effect.mean, effect.error)
            };
            let mut parts: Vec<(usize, f64, f64)> = taken.map(effect).collect();
            parts.sort_by(|a, b| b.1.total_cmp(&a.1));
            let without = |groups: &[usize]| {
                let mut choices = choices.clone();
                groups.iter().for_each(|g| choices[*g] = 0);
                Point::Choices(choices)
            };
            let helps = |(_, mean, error): &&(usize, f64, f64)| *mean < -2.0 * error;
            let idle: Vec<usize> = parts.iter().filter(|p| !helps(p)).map(|p| p.0).collect();
            let all = (!idle.is_empty()).then(|| without(&idle));
            all.into_iter()
                .chain(parts.iter().map(|p| without(&[p.0])))
                .collect()
        }
        Point::Sequence { level, rounds } => {
            let shorter = (0..rounds.len()).map(|i| {
                let mut rounds = rounds.clone();
                // The round stays, without passes: children exchange rounds by index.
                rounds[i].clear();
                Point::Sequence {
                    level: *level,
                    rounds,
                }
            });
            let plain = Point::Sequence {
                level: 0,
                rounds: rounds.clone(),
            };
            shorter.chain([plain]).collect()
        }
    }
}
