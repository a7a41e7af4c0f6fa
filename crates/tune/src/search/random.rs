//! Independent draws, without learning (CERE thesis, 5.4.4).

use super::point::{Ground, Point};
use rand::{Rng, RngExt};

/// Draws a point of the space, a sequence with probability one half if there are both. `None` if there is neither.
pub(super) fn draw(ground: &Ground, rng: &mut impl Rng) -> Option<Point> {
    let sequences = ground.has_sequences();
    if sequences && (ground.groups() == 0 || rng.random_bool(0.5)) {
        return ground.sequence(rng);
    }
    (ground.groups() > 0).then(|| choices(ground, rng, |group, rng| any(ground, group, rng)))
}

/// Choices of about half of the groups, by `pick`. Each draw has its own density, so that variants with few and with many
/// flags are equally frequent.
pub(super) fn choices<R: Rng>(
    ground: &Ground,
    rng: &mut R,
    mut pick: impl FnMut(usize, &mut R) -> usize,
) -> Point {
    let density: f64 = rng.random();
    let mut choice = |group| match rng.random::<f64>() < density {
        true => pick(group, rng),
        false => 0,
    };
    Point::Choices((0..ground.groups()).map(&mut choice).collect())
}

/// Draws a choice of a group; all are equally likely.
pub(super) fn any(ground: &Ground, group: usize, rng: &mut impl Rng) -> usize {
    match ground.choices(group) {
        0 => 0,
        choices => rng.random_range(1..=choices),
    }
}
