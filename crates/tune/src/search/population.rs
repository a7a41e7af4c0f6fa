//! The best variants so far, crossed and mutated. There are no generations, so outcomes may come in any order.

use super::point::{Ground, Point};
use super::random;
use super::trial::Trial;
use rand::{Rng, RngExt};

/// Size of the population.
const POPULATION: usize = 20;
/// Individuals whose best one becomes a parent.
const TOURNAMENT: usize = 3;

/// The best trials, best first.
pub(super) struct Population<'a>(Vec<&'a Point>);

impl<'a> Population<'a> {
    /// Selects the best of the trials that `which` accepts.
    pub(super) fn of(trials: &'a [Trial], which: impl Fn(&Point) -> bool) -> Self {
        let told = trials.iter().filter(|t| which(&t.point));
        let mut told: Vec<(&Point, f64)> = told
            .filter_map(|t| t.ratio().map(|r| (&t.point, r)))
            .collect();
        told.sort_by(|a, b| a.1.total_cmp(&b.1));
        Self(told.into_iter().take(POPULATION).map(|(p, _)| p).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A child of two of the population, which must not be empty.
    pub(super) fn child(&self, ground: &Ground, rng: &mut impl Rng) -> Point {
        let mut child = self.parent(rng).clone();
        // Parents of two kinds have nothing to exchange.
        cross(&mut child, self.parent(rng), rng);
        mutate(&mut child, ground, rng);
        child
    }

    fn parent(&self, rng: &mut impl Rng) -> &Point {
        let ranks = (0..TOURNAMENT).map(|_| rng.random_range(0..self.0.len()));
        self.0[ranks.min().unwrap_or(0)]
    }
}

/// Takes each group's choice, or each round, from one of the two at random.
fn cross(child: &mut Point, other: &Point, rng: &mut impl Rng) {
    match (child, other) {
        (Point::Choices(mine), Point::Choices(others)) => exchange(mine, others, rng),
        (
            Point::Sequence { level, rounds },
            Point::Sequence {
                level: other,
                rounds: others,
            },
        ) => {
            exchange(rounds, others, rng);
            if rng.random_bool(0.5) {
                *level = *other;
            }
        }
        _ => {}
    }
}

fn exchange<T: Clone>(mine: &mut [T], others: &[T], rng: &mut impl Rng) {
    for (mine, other) in mine.iter_mut().zip(others) {
        if rng.random_bool(0.5) {
            *mine = other.clone();
        }
    }
}

/// Draws one component again in the mean; half of the draws are no choice.
fn mutate(child: &mut Point, ground: &Ground, rng: &mut impl Rng) {
    match child {
        Point::Choices(choices) => {
            let rate = 1.0 / choices.len().max(1) as f64;
            for (group, choice) in choices.iter_mut().enumerate() {
                if rng.random_bool(rate) {
                    let nothing = *choice != 0 && rng.random_bool(0.5);
                    *choice = if nothing {
                        0
                    } else {
                        random::any(ground, group, rng)
                    };
                }
            }
        }
        Point::Sequence { level, rounds } => {
            let Some(Point::Sequence {
                level: new_level,
                rounds: new,
            }) = ground.sequence(rng)
            else {
                return;
            };
            let rate = 1.0 / (rounds.len() + 1) as f64;
            if rng.random_bool(rate) {
                *level = new_level;
            }
            for (round, new) in rounds.iter_mut().zip(new) {
                if rng.random_bool(rate) {
                    *round = new;
                }
            }
        }
    }
}
