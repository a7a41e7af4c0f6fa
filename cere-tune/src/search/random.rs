//! Draws that learn nothing (CERE thesis, 5.4.4).

use super::point::{Ground, Point};
use rand::{Rng, RngExt};

/// A point of the space; half of them sequences where there are both. None if there is neither.
pub(super) fn draw(ground: &Ground, rng: &mut impl Rng) -> Option<Point> {
    let sequences = ground.has_sequences();
    if sequences && (ground.groups() == 0 || rng.random_bool(0.5)) {
        return ground.sequence(rng);
    }
    (ground.groups() > 0).then(|| choices(ground, rng, |group, rng| any(ground, group, rng)))
}

/// Choices of about half of the groups, by `pick`: each draw has a density of its own, so that few flags come together
/// as often as many.
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

/// A choice of a group, each as likely.
pub(super) fn any(ground: &Ground, group: usize, rng: &mut impl Rng) -> usize {
    match ground.choices(group) {
        0 => 0,
        choices => rng.random_range(1..=choices),
    }
}
